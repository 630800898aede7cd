// A few rows of activations times a strip (decode, several users): all columns of a tile at once, so that the strip is
// read in one sweep with software prefetch ahead. Part of the strip kernel template.
#pragma once

#include "cpu/template/strip_types.h"

namespace kz {
namespace {

template <class Isa, class Type>
KZ_INLINE typename Isa::Ints dot(typename Isa::Ints sum, typename Isa::Bytes w, typename Isa::Bytes x) {
  if constexpr (Type::kSigned)
    return Isa::dot_signed(sum, w, x);
  else
    return Isa::dot(sum, w, x);
}

/// kRows rows x 32 columns of one strip.
template <class Isa, class Type, int kRows>
class FewRows {
 public:
  using Bytes = typename Isa::Bytes;
  using Ints = typename Isa::Ints;
  using Floats = typename Isa::Floats;

  FewRows(const Q8Rows& x, int64_t row) : x_(x), row_(row) {
    for (int r = 0; r < kRows; ++r) {
      for (int g = 0; g < kGroups; ++g) sum_[r][g] = Isa::floats(0.0f);
    }
  }

  /// Tile j of a block; n counts tiles of 32 inputs over the whole row.
  KZ_INLINE void tile(const StripBlock& b, int j, int64_t n) {
    constexpr bool kHalves = Type::kForm == Form::halves;
    const int64_t at = n * x_.n_rows + row_;
    for (int g0 = 0; g0 < kGroups; g0 += kStep) {
      Ints first[kRows][kStep], second[kRows][kStep];
      start(at, kHalves ? 1 : 0, first);
      add_lines<0, kHalves ? 2 : 4>(b, j, at, g0, first);
      if constexpr (kHalves) {
        start(at, 2, second);
        add_lines<2, 4>(b, j, at, g0, second);
      }
      for (int g = 0; g < kStep; ++g) {
        const TileScales<Isa> scales = tile_scales<Isa, Type>(b, j, (g0 + g) * Isa::kColumns);
        for (int r = 0; r < kRows; ++r) {
          sum_[r][g0 + g] =
              float_step<Isa, Type::kForm>(sum_[r][g0 + g], first[r][g], kHalves ? second[r][g] : first[r][g], scales,
                                           x_.scales[at + r], x_.scaled_sums[at + r]);
        }
      }
    }
  }

  KZ_INLINE void store(float* out, int64_t stride) const {
    for (int r = 0; r < kRows; ++r) {
      for (int g = 0; g < kGroups; ++g) Isa::store(out + r * stride + g * Isa::kColumns, sum_[r][g]);
    }
  }

 private:
  static constexpr int kGroups = 32 / Isa::kColumns;
  static constexpr int kMostStep = Isa::kFewSums / kRows;
  static constexpr int kStep = kMostStep >= 4 && kGroups >= 4 ? 4 : kMostStep >= 2 && kGroups >= 2 ? 2 : 1;

  /// Integer sums that start at minus zero point times the sum of the activation codes; which = 0 of all codes of the
  /// tile, 1 of the first sixteen, 2 of the others.
  KZ_INLINE void start(int64_t at, int which, Ints (&sum)[kRows][kStep]) const {
    constexpr int kZero = Type::kSigned ? Isa::kSignedZero : Type::kZero;
    for (int r = 0; r < kRows; ++r) {
      const int32_t* sums = x_.sums + 2 * (at + r);
      const int32_t codes = kZero == 0 ? 0 : which == 0 ? sums[0] + sums[1] : sums[which - 1];
      const Ints zero = Isa::ints(-kZero * codes);
      for (int g = 0; g < kStep; ++g) sum[r][g] = zero;
    }
  }

  /// Adds lines kFirst .. kLast - 1 of one tile to integer sums.
  template <int kFirst, int kLast>
  KZ_INLINE void add_lines(const StripBlock& b, int j, int64_t at, int g0, Ints (&sum)[kRows][kStep]) const {
    for_four([&](auto constant) {
      constexpr int c = decltype(constant)::value;
      if constexpr (c >= kFirst && c < kLast) {
        Bytes lo[kStep], hi[kStep];
        for (int g = 0; g < kStep; ++g) Type::template line<Isa, c>(b, j, 4 * Isa::kColumns * (g0 + g), lo[g], hi[g]);
        for (int r = 0; r < kRows; ++r) {
          const int8_t* codes = x_.codes + 32 * (at + r) + 8 * c;
          const Bytes x0 = Isa::splat4(codes);
          const Bytes x1 = Isa::splat4(codes + 4);
          for (int g = 0; g < kStep; ++g) sum[r][g] = dot<Isa, Type>(sum[r][g], lo[g], x0);
          for (int g = 0; g < kStep; ++g) sum[r][g] = dot<Isa, Type>(sum[r][g], hi[g], x1);
        }
      }
    });
  }

  const Q8Rows& x_;
  int64_t row_;
  Floats sum_[kRows][kGroups];
};

/// Announces to the second cache what is read some 2 KB after tile t of a strip (docs/decisions/strips.md). In K-quants
/// the planes and scales of a group of two blocks lie behind its codes, but are needed with its first tile: those of
/// the next group are announced bit by bit.
template <class Type>
KZ_INLINE void prefetch_ahead(const std::byte* strip, int64_t t) {
  if constexpr (Type::kFamily == Family::simple) {
    const std::byte* from = strip + t * Type::kBlockBytes + 2304;
    for (int64_t at = 0; at < Type::kBlockBytes; at += 64) __builtin_prefetch(from + at, 0, 2);
  } else {
    constexpr int64_t kGroup = 2 * Type::kBlockBytes, kCodes = 2 * Type::kCodesBytes;
    constexpr int64_t kOthers = (kGroup - kCodes) / 64, kPerTile = (kOthers + 15) / 16;  // lines
    const int64_t ahead = t + 4;
    const std::byte* codes = strip + (ahead >> 4) * kGroup + (ahead & 15) * 512;
    for (int64_t at = 0; at < 512; at += 64) __builtin_prefetch(codes + at, 0, 2);
    const std::byte* others = strip + ((t >> 4) + 1) * kGroup + kCodes + (t & 15) * kPerTile * 64;
    for (int64_t line = 0; line < kPerTile; ++line) __builtin_prefetch(others + 64 * line, 0, 2);
  }
}

/// One or two neighbouring strips side by side: memory is read in as many streams, which is faster than one
/// (docs/decisions/strips.md).
template <class Isa, class Type, int kRows, int kStrips>
void few_rows(const StripProductArgs& args, const std::byte* strip, int64_t row, float* out) {
  const int64_t n_blocks = args.cols / (32 * Type::kTiles);
  FewRows<Isa, Type, kRows> first(*args.x, args.first_row + row), second(*args.x, args.first_row + row);
  for (int64_t n = 0; n < n_blocks; ++n) {
    const StripBlock block = strip_block<Type>(strip, n, n_blocks);
    const StripBlock next = strip_block<Type>(strip + (kStrips - 1) * args.stride_bytes, n, n_blocks);
    for (int j = 0; j < Type::kTiles; ++j) {
      prefetch_ahead<Type>(strip, n * Type::kTiles + j);
      first.tile(block, j, n * Type::kTiles + j);
      if constexpr (kStrips > 1) {
        prefetch_ahead<Type>(strip + args.stride_bytes, n * Type::kTiles + j);
        second.tile(next, j, n * Type::kTiles + j);
      }
    }
  }
  first.store(out + row * args.out_stride, args.out_stride);
  if constexpr (kStrips > 1) second.store(out + 32 + row * args.out_stride, args.out_stride);
}

/// The most rows of 8, 6, 4, 3, 2, 1 that are left at a time.
template <class Isa, class Type, int kRows, int kStrips>
KZ_INLINE void few_from(const StripProductArgs& args, const std::byte* strip, int64_t& row, float* out) {
  if constexpr (kRows <= Isa::kFewRows) {
    for (; row + kRows <= args.n_rows; row += kRows) few_rows<Isa, Type, kRows, kStrips>(args, strip, row, out);
  }
}

template <class Isa, class Type, int kStrips>
void few_strip(const StripProductArgs& args, const std::byte* strip, float* out) {
  int64_t row = 0;
  few_from<Isa, Type, 8, kStrips>(args, strip, row, out);
  few_from<Isa, Type, 6, kStrips>(args, strip, row, out);
  few_from<Isa, Type, 4, kStrips>(args, strip, row, out);
  few_from<Isa, Type, 3, kStrips>(args, strip, row, out);
  few_from<Isa, Type, 2, kStrips>(args, strip, row, out);
  few_from<Isa, Type, 1, kStrips>(args, strip, row, out);
}

}  // namespace
}  // namespace kz
