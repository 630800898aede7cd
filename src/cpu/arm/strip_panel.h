// Many rows of activations times a strip (prefill, several users), for the ARM tables. A chunk of a strip is unpacked
// once into bytes and floats in the first cache and meets all rows there.
//
// A table supplies a struct Unit that decides which sums share a vector of four:
//
//   kTogether                          rows that share a vector: 1 (then it holds four columns) or 2 (two columns)
//   Sums<n>                            integer sums of n rows (even) x 8 columns: of[n / kTogether][2 * kTogether]
//   prepare<n>(rows, to)               lays the codes of n rows out as add() reads them
//   put(to, c, g, lo, hi)              keeps unpacked line c of column group g; 8 columns lie in 256 bytes
//   add<kFirst, kLast>(sums, w, x)     adds lines kFirst .. kLast - 1
//   columns(p)                         the values at p of the columns of one vector, once for every row in it
//   spread(two, r, to), rows(from, i)  keeps one value each of rows r, r + 1; gives them back as the vector for of[i]
//   swap(a, b)                         turns two vectors of of[i] into four columns of one row each, and back
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

/// What kPanelRows rows bring to one tile, as the unit spreads it. Rows behind the last one repeat it.
struct PanelInput {
  alignas(16) int8_t codes[32 * kPanelRows];
  int32_t start[2][2 * kPanelRows];  ///< -kZero times the sums of codes; of both halves for Q6_K, else [0] of all
  float scale[2 * kPanelRows];
  float scaled_sum[2 * kPanelRows];
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

  /// Sums of eight columns of kRows rows, in the order of the unit.
  template <int kRows>
  struct Part {
    alignas(16) float of[kRows / Unit::kTogether][2 * Unit::kTogether][4];
  };

  /// Tiles [first, first + n) for rows row .. row + kRows - 1, as far as there are that many. Sums wait in `out`
  /// between chunks.
  template <int kRows>
  void rows(int64_t row, int64_t first, int n, float* out) {
    const int real = static_cast<int>(args_.n_rows - row < kRows ? args_.n_rows - row : kRows);
    Part<kRows> parts[4] = {};
    out += row * args_.out_stride;
    if (first > 0) {
      for (int pair = 0; pair < 4; ++pair) load(parts[pair], real, out + 8 * pair);
    }
    for (int i = 0; i < n; ++i) {
      PanelInput input;
      take_input<kRows>(first + i, row, real, input);
      for (int pair = 0; pair < 4; ++pair) tile<kRows>(tiles_[i], input, pair, parts[pair]);
    }
    for (int pair = 0; pair < 4; ++pair) store(parts[pair], real, out + 8 * pair);
  }

  template <int kRows>
  KZ_INLINE void load(Part<kRows>& part, int real, const float* out) const {
    for (int r = 0; r < kRows; r += 2) {
      for (int g = 0; g < 2; ++g) {
        const float* first = out + (r < real ? r : real - 1) * args_.out_stride + 4 * g;
        const float* second = out + (r + 1 < real ? r + 1 : real - 1) * args_.out_stride + 4 * g;
        Neon::Floats a = vld1q_f32(first), b = vld1q_f32(second);
        Unit::swap(a, b);
        vst1q_f32(place(part, r, g, 0), a);
        vst1q_f32(place(part, r, g, 1), b);
      }
    }
  }

  template <int kRows>
  KZ_INLINE void store(Part<kRows>& part, int real, float* out) const {
    for (int r = 0; r < real; r += 2) {
      for (int g = 0; g < 2; ++g) {
        Neon::Floats a = vld1q_f32(place(part, r, g, 0)), b = vld1q_f32(place(part, r, g, 1));
        Unit::swap(a, b);
        vst1q_f32(out + r * args_.out_stride + 4 * g, a);
        if (r + 1 < real) vst1q_f32(out + (r + 1) * args_.out_stride + 4 * g, b);
      }
    }
  }

  /// The two vectors that hold columns 4 g .. 4 g + 3 of rows r, r + 1.
  template <int kRows>
  KZ_INLINE static float* place(Part<kRows>& part, int r, int g, int second) {
    if constexpr (Unit::kTogether == 2)
      return part.of[r / 2][2 * g + second];
    else
      return part.of[r + second][g];
  }

  template <int kRows>
  KZ_INLINE void take_input(int64_t n, int64_t row, int real, PanelInput& input) const {
    constexpr int32_t kZero = Type::kSigned ? 0 : Type::kZero;
    const int64_t at = n * x_.n_rows + args_.first_row + row;
    const int8_t* codes[kRows];
    for (int r = 0; r < kRows; ++r) codes[r] = x_.codes + 32 * (at + (r < real ? r : real - 1));
    Unit::template prepare<kRows>(codes, input.codes);
    for (int r = 0; r < kRows; r += 2) {
      const int64_t a = at + (r < real ? r : real - 1), b = at + (r + 1 < real ? r + 1 : real - 1);
      const int32x2_t first = vld1_s32(x_.sums + 2 * a), second = vld1_s32(x_.sums + 2 * b);
      const int32x2_t sum = vpadd_s32(first, second);
      if constexpr (Type::kFamily == Family::k6) {
        Unit::spread(vmul_n_s32(vzip1_s32(first, second), -kZero), r, input.start[0]);
        Unit::spread(vmul_n_s32(vzip2_s32(first, second), -kZero), r, input.start[1]);
      } else if constexpr (kZero != 0) {
        Unit::spread(vmul_n_s32(sum, -kZero), r, input.start[0]);
      }
      Unit::spread(two(x_.scales, a, b), r, input.scale);
      if constexpr (Type::kMin) Unit::spread(two(x_.scaled_sums, a, b), r, input.scaled_sum);
    }
  }

  KZ_INLINE static float32x2_t two(const float* p, int64_t a, int64_t b) {
    return vld1_lane_f32(p + b, vdup_n_f32(p[a]), 1);
  }

  template <int kRows>
  KZ_INLINE static void clear(typename Unit::template Sums<kRows>& sums, const int32_t* start) {
    constexpr int kVectors = 2 * Unit::kTogether;
    for (int i = 0; i < kRows / Unit::kTogether; ++i) {
      Neon::Ints first = Neon::ints(0);
      if constexpr (!Type::kSigned && Type::kZero != 0) first = Unit::rows(start, i);
      for (int v = 0; v < kVectors; ++v) sums.of[i][v] = first;
    }
  }

  /// One tile, columns 8 * pair .. 8 * pair + 7.
  template <int kRows>
  KZ_INLINE static void tile(const PanelTile& w, const PanelInput& x, int pair, Part<kRows>& part) {
    const int8_t* codes = w.codes + 256 * pair;
    typename Unit::template Sums<kRows> sums;
    clear<kRows>(sums, x.start[0]);
    if constexpr (Type::kFamily == Family::k6) {
      tile_k6<kRows>(w, x, pair, sums, part);
    } else {
      Unit::template add<0, 4>(sums, codes, x.codes);
      for (int v = 0; v < 2 * Unit::kTogether; ++v)
        step<kRows>(w, x, sums, v, 8 * pair + 4 / Unit::kTogether * v, part);
    }
  }

  /// The float step of the columns of vector v, from c on, for all but Q6_K; the order of operations is the class's.
  template <int kRows>
  KZ_INLINE static void step(const PanelTile& w, const PanelInput& x, const typename Unit::template Sums<kRows>& sums,
                             int v, int c, Part<kRows>& part) {
    const Neon::Floats d = Unit::columns(w.d + c), min = Unit::columns(w.min + c);
    for (int i = 0; i < kRows / Unit::kTogether; ++i) {
      const Neon::Floats step = Neon::mul(d, Unit::rows(x.scale, i));
      Neon::Floats sum = Neon::fma(Neon::convert(sums.of[i][v]), step, vld1q_f32(part.of[i][v]));
      if constexpr (Type::kMin) sum = Neon::fma(min, Unit::rows(x.scaled_sum, i), sum);
      vst1q_f32(part.of[i][v], sum);
    }
  }

  /// Two groups of sixteen inputs, each with its scale; the first waits as floats while the second is summed.
  template <int kRows>
  KZ_INLINE static void tile_k6(const PanelTile& w, const PanelInput& x, int pair,
                                typename Unit::template Sums<kRows>& sums, Part<kRows>& part) {
    constexpr int kVectors = 2 * Unit::kTogether, kWide = 4 / Unit::kTogether;
    const int8_t* codes = w.codes + 256 * pair;
    Part<kRows> first;
    Unit::template add<0, 2>(sums, codes, x.codes);
    for (int v = 0; v < kVectors; ++v) {
      const Neon::Floats scale = Unit::columns(w.scale[0] + 8 * pair + kWide * v);
      for (int i = 0; i < kRows / Unit::kTogether; ++i)
        vst1q_f32(first.of[i][v], Neon::mul(Neon::convert(sums.of[i][v]), scale));
    }
    clear<kRows>(sums, x.start[1]);
    Unit::template add<2, 4>(sums, codes, x.codes);
    for (int v = 0; v < kVectors; ++v) {
      const int c = 8 * pair + kWide * v;
      const Neon::Floats scale = Unit::columns(w.scale[1] + c), d = Unit::columns(w.d + c);
      for (int i = 0; i < kRows / Unit::kTogether; ++i) {
        const Neon::Floats second = Neon::mul(Neon::convert(sums.of[i][v]), scale);
        const Neon::Floats whole = Neon::add(vld1q_f32(first.of[i][v]), second);
        const Neon::Floats step = Neon::mul(d, Unit::rows(x.scale, i));
        vst1q_f32(part.of[i][v], Neon::fma(whole, step, vld1q_f32(part.of[i][v])));
      }
    }
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
