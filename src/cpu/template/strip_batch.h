// Many rows of activations times a strip (prefill): a chunk of the strip is unpacked once into the first cache, bytes
// and floats, and meets all rows there. Sums wait in the output between chunks, so their order does not change. Part of
// the strip kernel template.
#pragma once

#include "cpu/template/strip_types.h"

namespace kz {
namespace {

/// How the codes of a type lie in an unpacked tile.
struct Unpacked {
  int shift;         ///< added to each code
  int zero;          ///< what a weight 0 is then
  bool is_unsigned;  ///< and how the dot product must read it
};

/// One tile of 32 inputs x 32 columns. Four inputs of one vector of columns are a line of 4 * kColumns bytes; the eight
/// lines of a vector follow each other.
template <int kTiles>
struct UnpackedChunk {
  alignas(64) uint8_t codes[kTiles][1024];
  alignas(64) float d[kTiles][32];
  alignas(64) float second[kTiles][32];
  alignas(64) float third[kTiles][32];
};

template <class Isa, class Type, int kTiles>
void unpack_chunk(const std::byte* strip, int64_t first, int n, int64_t n_blocks, UnpackedChunk<kTiles>& to) {
  constexpr int kLine = 4 * Isa::kColumns;
  constexpr Unpacked kHow = Isa::unpacked(Type::kZero, Type::kSigned, Type::kMin);
  for (int i = 0; i < n; ++i) {
    const StripBlock b = strip_block<Type>(strip, (first + i) / Type::kTiles, n_blocks);
    const int j = static_cast<int>((first + i) % Type::kTiles);
    for (int g = 0; g < 32 / Isa::kColumns; ++g) {
      uint8_t* codes = to.codes[i] + 8 * kLine * g;
      for_four([&](auto constant) {
        constexpr int c = decltype(constant)::value;
        typename Isa::Bytes lo, hi;
        Type::template line<Isa, c>(b, j, kLine * g, lo, hi);
        Isa::store_bytes(codes + 2 * c * kLine, Isa::template add_bytes<kHow.shift>(lo));
        Isa::store_bytes(codes + (2 * c + 1) * kLine, Isa::template add_bytes<kHow.shift>(hi));
      });
      const int at = g * Isa::kColumns;
      const TileScales<Isa> s = tile_scales<Isa, Type>(b, j, at);
      Isa::store(to.d[i] + at, s.d);
      if constexpr (Type::kForm != Form::plain) Isa::store(to.second[i] + at, s.second);
      if constexpr (Type::kForm == Form::halves) Isa::store(to.third[i] + at, s.third);
    }
  }
}

/// kRows rows x kBatchGroups vectors of columns from vector g0, over one chunk.
template <class Isa, Form kForm, int kZero, bool kUnsigned, int kRows>
class BatchTile {
 public:
  using Ints = typename Isa::Ints;
  using Floats = typename Isa::Floats;
  static constexpr int kGroups = Isa::kBatchGroups, kLine = 4 * Isa::kColumns;

  KZ_INLINE BatchTile(const Q8Rows& x, int g0) : x_(x), g0_(g0) {}

  KZ_INLINE void load(const float* out, int64_t stride, bool first) {
    for (int r = 0; r < kRows; ++r) {
      for (int g = 0; g < kGroups; ++g)
        sum_[r][g] = first ? Isa::floats(0.0f) : Isa::load(out + r * stride + (g0_ + g) * Isa::kColumns);
    }
  }
  KZ_INLINE void store(float* out, int64_t stride) const {
    for (int r = 0; r < kRows; ++r) {
      for (int g = 0; g < kGroups; ++g) Isa::store(out + r * stride + (g0_ + g) * Isa::kColumns, sum_[r][g]);
    }
  }

  /// Tile i of the chunk with the activation blocks from index `at`.
  template <int kTiles>
  KZ_INLINE void tile(const UnpackedChunk<kTiles>& chunk, int i, int64_t at) {
    constexpr bool kHalves = kForm == Form::halves;
    Ints first[kRows][kGroups], second[kRows][kGroups];
    start(at, kHalves ? 1 : 0, first);
    add_lines<0, kHalves ? 4 : 8>(chunk.codes[i], at, first);
    if constexpr (kHalves) {
      start(at, 2, second);
      add_lines<4, 8>(chunk.codes[i], at, second);
    }
    for (int g = 0; g < kGroups; ++g) {
      const int c = (g0_ + g) * Isa::kColumns;
      TileScales<Isa> s;
      s.d = Isa::load(chunk.d[i] + c);
      if constexpr (kForm != Form::plain) s.second = Isa::load(chunk.second[i] + c);
      if constexpr (kHalves) s.third = Isa::load(chunk.third[i] + c);
      for (int r = 0; r < kRows; ++r) {
        sum_[r][g] = float_step<Isa, kForm>(sum_[r][g], first[r][g], kHalves ? second[r][g] : first[r][g], s,
                                            x_.scales[at + r], x_.scaled_sums[at + r]);
      }
    }
  }

 private:
  KZ_INLINE void start(int64_t at, int which, Ints (&sum)[kRows][kGroups]) const {
    for (int r = 0; r < kRows; ++r) {
      Ints zero;
      if constexpr (kZero == 128 && kForm == Form::plain) {
        zero = Isa::ints(x_.starts[at + r]);
      } else {
        const int32_t* sums = x_.sums + 2 * (at + r);
        zero = Isa::ints(kZero == 0 ? 0 : -kZero * (which == 0 ? sums[0] + sums[1] : sums[which - 1]));
      }
      for (int g = 0; g < kGroups; ++g) sum[r][g] = zero;
    }
  }

  template <int kFirst, int kLast>
  KZ_INLINE void add_lines(const uint8_t* codes, int64_t at, Ints (&sum)[kRows][kGroups]) const {
#pragma GCC unroll 8
    for (int line = kFirst; line < kLast; ++line) {
      typename Isa::Bytes w[kGroups];
      for (int g = 0; g < kGroups; ++g) w[g] = Isa::bytes(codes + (8 * (g0_ + g) + line) * kLine);
      for (int r = 0; r < kRows; ++r) {
        const auto x = Isa::splat4(x_.codes + 32 * (at + r) + 4 * line);
        for (int g = 0; g < kGroups; ++g)
          sum[r][g] = kUnsigned ? Isa::dot(sum[r][g], w[g], x) : Isa::dot_signed(sum[r][g], w[g], x);
      }
    }
  }

  const Q8Rows& x_;
  int g0_;
  Floats sum_[kRows][kGroups];
};

/// One chunk in work: tiles [first, first + n) of a strip.
template <int kTiles>
struct ChunkPass {
  const StripProductArgs& args;
  const UnpackedChunk<kTiles>& chunk;
  int64_t first;
  int n;
  const std::byte* next;  ///< packed bytes of the next chunk, to be announced piece by piece
  int64_t next_bytes;     ///< per tile of rows
  float* out;
};

/// Bytes of the next chunk that each of the row tiles announces, in whole lines.
KZ_INLINE int64_t next_share(int64_t chunk_bytes, int64_t n_rows, int64_t tile_rows) {
  const int64_t n_tiles = (n_rows + tile_rows - 1) / tile_rows;
  return (chunk_bytes / n_tiles + 63) / 64 * 64;
}

template <class Isa, Form kForm, int kZero, bool kUnsigned, int kRows, int kTiles>
void batch_rows(const ChunkPass<kTiles>& pass, int64_t row) {
  const Q8Rows& x = *pass.args.x;
  const int64_t stride = pass.args.out_stride;
  float* out = pass.out + row * stride;
  const std::byte* next = pass.next + row / Isa::kBatchRows * pass.next_bytes;
  for (int64_t at = 0; at < pass.next_bytes; at += 64) __builtin_prefetch(next + at, 0, 2);
  for (int g = 0; g < 32 / Isa::kColumns; g += Isa::kBatchGroups) {
    BatchTile<Isa, kForm, kZero, kUnsigned, kRows> tile(x, g);
    tile.load(out, stride, pass.first == 0);
    int64_t at = pass.first * x.n_rows + pass.args.first_row + row;
    for (int i = 0; i < pass.n; ++i, at += x.n_rows) tile.tile(pass.chunk, i, at);
    tile.store(out, stride);
  }
}

template <class Isa, Form kForm, int kZero, bool kUnsigned, int kRows, int kTiles>
void batch_tail(const ChunkPass<kTiles>& pass, int64_t row, int64_t n) {
  if constexpr (kRows > 0) {
    if (n == kRows) return batch_rows<Isa, kForm, kZero, kUnsigned, kRows>(pass, row);
    batch_tail<Isa, kForm, kZero, kUnsigned, kRows - 1>(pass, row, n);
  }
}

template <class Isa, Form kForm, int kZero, bool kUnsigned, int kTiles>
void batch_pass(const ChunkPass<kTiles>& pass) {
  constexpr int64_t kRows = Isa::kBatchRows;
  int64_t row = 0;
  for (; row + kRows <= pass.args.n_rows; row += kRows) batch_rows<Isa, kForm, kZero, kUnsigned, kRows>(pass, row);
  batch_tail<Isa, kForm, kZero, kUnsigned, Isa::kBatchRows - 1>(pass, row, pass.args.n_rows - row);
}

template <class Isa, class Type>
void batch_strip(const StripProductArgs& args, const std::byte* strip, float* out) {
  constexpr Unpacked kHow = Isa::unpacked(Type::kZero, Type::kSigned, Type::kMin);
  constexpr int64_t kTileBytes = Type::kBlockBytes / Type::kTiles;
  const int64_t n_tiles = args.cols / 32, n_blocks = n_tiles / Type::kTiles;
  const int64_t share = next_share(Isa::kChunkTiles * kTileBytes, args.n_rows, Isa::kBatchRows);
  UnpackedChunk<Isa::kChunkTiles> chunk;
  for (int64_t first = 0; first < n_tiles; first += Isa::kChunkTiles) {
    const int n = static_cast<int>(n_tiles - first < Isa::kChunkTiles ? n_tiles - first : Isa::kChunkTiles);
    unpack_chunk<Isa, Type>(strip, first, n, n_blocks, chunk);
    const std::byte* next = strip + (first + n) * kTileBytes;
    batch_pass<Isa, Type::kForm, kHow.zero, kHow.is_unsigned>(
        ChunkPass<Isa::kChunkTiles>{args, chunk, first, n, next, share, out});
  }
}

}  // namespace
}  // namespace kz
