// Many rows of activations times a strip (prefill, several users), for the ARM tables. A chunk of a strip is unpacked
// once into bytes and floats in the first cache and meets all rows there.
//
// A table supplies a struct Unit with
//
//   Sums<n>                            integer sums of n rows (even) x 8 columns
//   prepare<n>(rows, to)               lays the codes of n rows out as add() reads them
//   put(to, c, g, lo, hi)              keeps unpacked line c of column group g; 8 columns lie in 256 bytes
//   clear(sums, start)                 sums <- start[row]
//   add<kFirst, kLast>(sums, w, x)     adds lines kFirst .. kLast - 1
//   row(sums, r, g)                    the sums of row r with column group g (0, 1) of the eight columns
#pragma once

#include "cpu/arm/strip_row.h"

namespace kz {
namespace {

/// Rows that meet an unpacked chunk together, and tiles of 32 inputs in a chunk.
constexpr int kPanelRows = 8;
constexpr int kPanelTiles = 8;

/// One tile of 32 inputs x 32 columns, unpacked: codes in the order of the unit, scales as floats.
struct PanelTile {
  alignas(16) int8_t codes[1024];
  alignas(16) float d[32];  ///< d, or d times the scale of the sub-block
  float min[32];            ///< m, or minus dmin times the min of the sub-block
  float scale[2][32];       ///< Q6_K: of both groups
};

/// What kPanelRows rows bring to one tile. Rows behind the last one repeat it.
struct PanelInput {
  alignas(16) int8_t codes[32 * kPanelRows];
  int32_t start[2][kPanelRows];  ///< -kZero times the sums of codes; of both halves for Q6_K, else [0] of all
  float scale[kPanelRows];
  float code_sum[kPanelRows];
};

template <class Unit, class Type>
class StripPanel {
 public:
  explicit StripPanel(const StripProductArgs& args) : args_(args), x_(*args.x) {}

  void multiply(const std::byte* strip, float* out) {
    const int64_t n_tiles = args_.cols / 32;
    for (int64_t tile = 0; tile < n_tiles; tile += kPanelTiles) {
      const int n = static_cast<int>(n_tiles - tile < kPanelTiles ? n_tiles - tile : kPanelTiles);
      unpack(strip, tile, n);
      int64_t row = 0;
      for (; row + 6 < args_.n_rows; row += kPanelRows) rows<8>(row, tile, n, out);
      const int64_t left = args_.n_rows - row;
      if (left > 4) rows<6>(row, tile, n, out);
      if (left > 2 && left <= 4) rows<4>(row, tile, n, out);
      if (left > 0 && left <= 2) rows<2>(row, tile, n, out);
    }
  }

 private:
  static constexpr int kTiles = Type::kFamily == Family::simple ? 1 : 8;  // of a block

  void unpack(const std::byte* strip, int64_t first, int n) {
    const int64_t n_blocks = args_.cols / (32 * kTiles);
    for (int i = 0; i < n; ++i) {
      const int64_t at = first + i;
      const int j = static_cast<int>(at % kTiles);
      prefetch_tile<Type>(strip + at * (Type::kBlockBytes / kTiles));
      const StripBlock b = strip_block<Type>(strip, at / kTiles, n_blocks);
      unpack_codes(b, j, tiles_[i]);
      unpack_scales(b, j, tiles_[i]);
    }
  }

  KZ_INLINE static void unpack_codes(const StripBlock& b, int j, PanelTile& to) {
    for_constants<0, 4>([&](auto constant) {
      constexpr int c = decltype(constant)::value;
      for (int g = 0; g < Neon::kGroups; ++g) {
        Neon::Bytes lo, hi;
        Type::template line<Neon, c>(b, j, 16 * g, lo, hi);
        Unit::put(to.codes, c, g, vreinterpretq_s8_u8(lo), vreinterpretq_s8_u8(hi));
      }
    });
  }

  KZ_INLINE static void unpack_scales(const StripBlock& b, int j, PanelTile& to) {
    const uint8_t* d = Type::kFamily == Family::simple ? b.scales : b.mins;
    for (int c = 0; c < 32; c += 4) {
      Neon::store(to.d + c, Neon::half(d + 2 * c));
      if constexpr (Type::kFamily == Family::simple && Type::kMin) {
        Neon::store(to.min + c, Neon::half(b.mins + 2 * c));
      } else if constexpr (Type::kFamily == Family::k45) {
        Neon::store(to.min + c, Neon::half(b.mins + 64 + 2 * c));
      } else if constexpr (Type::kFamily == Family::k6) {
        Neon::store(to.scale[0] + c, Neon::int8(b.scales + 64 * j + c));
        Neon::store(to.scale[1] + c, Neon::int8(b.scales + 64 * j + 32 + c));
      }
    }
    if constexpr (Type::kFamily == Family::k45) {
      for (int c = 0; c < 32; c += 16) {
        const uint8_t *low = b.scales + 32 * (j & 3) + c, *high = b.scales + 256 + 32 * (j >> 2) + c;
        multiply_by(to.d + c, Neon::six16(low, high, j));
        multiply_by(to.min + c, Neon::six16(low + 128, high + 64, j));
      }
      for (int c = 0; c < 32; c += 4) Neon::store(to.min + c, vnegq_f32(vld1q_f32(to.min + c)));
    }
  }

  /// Exact: 11 times 6 bits.
  KZ_INLINE static void multiply_by(float* to, const Neon::Six& six) {
    for (int q = 0; q < 4; ++q) Neon::store(to + 4 * q, Neon::mul(vld1q_f32(to + 4 * q), six.of[q]));
  }

  /// Tiles [first, first + n) for rows row .. row + kRows - 1, as far as there are that many. Sums wait in `out`
  /// between chunks.
  template <int kRows>
  void rows(int64_t row, int64_t first, int n, float* out) {
    const int real = static_cast<int>(args_.n_rows - row < kRows ? args_.n_rows - row : kRows);
    alignas(16) float sums[kRows][32];
    for (int r = 0; r < kRows; ++r) {
      const float* from = out + (row + r) * args_.out_stride;
      for (int c = 0; c < 32; c += 4)
        Neon::store(sums[r] + c, first > 0 && r < real ? vld1q_f32(from + c) : Neon::floats(0.0f));
    }
    for (int i = 0; i < n; ++i) {
      PanelInput input;
      take_input<kRows>(first + i, row, real, input);
      for (int pair = 0; pair < Neon::kGroups / 2; ++pair) tile<kRows>(tiles_[i], input, pair, sums);
    }
    for (int r = 0; r < real; ++r) {
      float* to = out + (row + r) * args_.out_stride;
      for (int c = 0; c < 32; c += 4) Neon::store(to + c, vld1q_f32(sums[r] + c));
    }
  }

  template <int kRows>
  KZ_INLINE void take_input(int64_t n, int64_t row, int real, PanelInput& input) const {
    constexpr int32_t kZero = Type::kSigned ? 0 : Type::kZero;
    const int8_t* codes[kRows];
    for (int r = 0; r < kRows; ++r) {
      const int64_t at = n * x_.n_rows + args_.first_row + row + (r < real ? r : real - 1);
      const int32_t *halves = x_.sums + 2 * at, sum = halves[0] + halves[1];
      codes[r] = x_.codes + 32 * at;
      input.scale[r] = x_.scales[at];
      input.code_sum[r] = static_cast<float>(sum);
      input.start[0][r] = -kZero * (Type::kFamily == Family::k6 ? halves[0] : sum);
      input.start[1][r] = -kZero * halves[1];
    }
    Unit::template prepare<kRows>(codes, input.codes);
  }

  /// One tile, columns 8 * pair .. 8 * pair + 7.
  template <int kRows>
  KZ_INLINE static void tile(const PanelTile& w, const PanelInput& x, int pair, float (&sums)[kRows][32]) {
    const int8_t* codes = w.codes + 256 * pair;
    typename Unit::template Sums<kRows> isum;
    Unit::clear(isum, x.start[0]);
    if constexpr (Type::kFamily == Family::k6) {
      tile_k6<kRows>(w, x, pair, isum, sums);
    } else {
      Unit::template add<0, 4>(isum, codes, x.codes);
      for (int g = 0; g < 2; ++g) step<kRows>(w, x, isum, g, 8 * pair + 4 * g, sums);
    }
  }

  /// Two groups of sixteen inputs, each with its scale; the first waits as floats while the second is summed.
  template <int kRows>
  KZ_INLINE static void tile_k6(const PanelTile& w, const PanelInput& x, int pair,
                                typename Unit::template Sums<kRows>& isum, float (&sums)[kRows][32]) {
    const int8_t* codes = w.codes + 256 * pair;
    alignas(16) float part[kRows][8];
    Unit::template add<0, 2>(isum, codes, x.codes);
    for (int g = 0; g < 2; ++g) {
      const Neon::Floats scale = vld1q_f32(w.scale[0] + 8 * pair + 4 * g);
      for (int r = 0; r < kRows; ++r)
        Neon::store(part[r] + 4 * g, Neon::mul(Neon::convert(Unit::row(isum, r, g)), scale));
    }
    Unit::clear(isum, x.start[1]);
    Unit::template add<2, 4>(isum, codes, x.codes);
    for (int g = 0; g < 2; ++g) {
      const int c = 8 * pair + 4 * g;
      const Neon::Floats scale = vld1q_f32(w.scale[1] + c), d = vld1q_f32(w.d + c);
      for (int r = 0; r < kRows; ++r) {
        const Neon::Floats second = Neon::mul(Neon::convert(Unit::row(isum, r, g)), scale);
        add_to(sums[r] + c, Neon::add(vld1q_f32(part[r] + 4 * g), second), vmulq_n_f32(d, x.scale[r]));
      }
    }
  }

  /// The float step of columns c .. c + 3 for all but Q6_K; the order of operations is the class's.
  template <int kRows>
  KZ_INLINE static void step(const PanelTile& w, const PanelInput& x, const typename Unit::template Sums<kRows>& isum,
                             int g, int c, float (&sums)[kRows][32]) {
    const Neon::Floats d = vld1q_f32(w.d + c), min = vld1q_f32(w.min + c);
    for (int r = 0; r < kRows; ++r) {
      const Neon::Floats whole = Neon::convert(Unit::row(isum, r, g));
      Neon::Floats sum = Neon::fma(whole, vmulq_n_f32(d, x.scale[r]), vld1q_f32(sums[r] + c));
      if constexpr (Type::kMin) sum = Neon::fma(min, Neon::floats(x.scale[r] * x.code_sum[r]), sum);
      Neon::store(sums[r] + c, sum);
    }
  }

  KZ_INLINE static void add_to(float* sum, Neon::Floats a, Neon::Floats b) {
    Neon::store(sum, Neon::fma(a, b, vld1q_f32(sum)));
  }

  const StripProductArgs& args_;
  const Q8Rows& x_;
  PanelTile tiles_[kPanelTiles];
};

template <class Unit, class Type>
void panel_product(const StripProductArgs& args) {
  StripPanel<Unit, Type> panel(args);
  for (int64_t s = 0; s < args.n_strips; ++s) {
    const std::byte* strip = args.strips + s * args.stride_bytes;
    if (args.n_rows == 1)
      strip_row<Type>(args, strip, args.out + 32 * s);
    else
      panel.multiply(strip, args.out + 32 * s);
  }
}

template <class Unit>
void neon_product(const StripProductArgs& args) {
  switch (args.gguf_type) {
    case Q4_0::kId:
      return panel_product<Unit, Q4_0>(args);
    case Q4_1::kId:
      return panel_product<Unit, Q4_1>(args);
    case Q5_0::kId:
      return panel_product<Unit, Q5_0>(args);
    case Q5_1::kId:
      return panel_product<Unit, Q5_1>(args);
    case Q8_0::kId:
      return panel_product<Unit, Q8_0>(args);
    case Q4_K::kId:
      return panel_product<Unit, Q4_K>(args);
    case Q5_K::kId:
      return panel_product<Unit, Q5_K>(args);
    case Q6_K::kId:
      return panel_product<Unit, Q6_K>(args);
    case IQ4_NL::kId:
      return panel_product<Unit, IQ4_NL>(args);
    default:
      return;
  }
}

}  // namespace
}  // namespace kz
