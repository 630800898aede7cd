// Products on strips, written once and compiled once per instruction set. Part of the strip kernel template.
//
// A table supplies a struct Isa with
//
//   Bytes, Ints, Floats       vectors of kColumns * 4 bytes, kColumns int32, kColumns float
//   kColumns                  columns of a strip in one vector: 16 (AVX-512), 8 (AVX2), 4 (NEON), 1 (scalar)
//   kTileRows, kTileGroups    register tile of many rows: rows x column groups of kColumns
//   kSignedZero               what dot_signed adds to every weight (128 where the unit takes unsigned weights only)
//   bytes(p), splat4(p)       load; four activation codes in every group of four bytes
//   low, high                 nibbles of each byte
//   up<n>, down<n>            each byte shifted (what crosses into the neighbour byte is masked by the caller)
//   mask(v, byte), either, table16
//   ints(x), dot(sum, unsigned weights, codes), dot_signed
//   floats(x), half(p), int8(p), nibble(p), convert, mul, fma
//
// and results are the same bits for every table: block sums are exact integers, and the float step is
//   sum <- fma(float(block sum), d * dx, sum), then for types with a minimum sum <- fma(m, dx * float(sum of codes),
//   sum)
// in ascending block order with one sum per output.
#pragma once

#include "cpu/strip_kernels.h"

#define KZ_INLINE [[gnu::always_inline]] inline

namespace kz {
namespace {

template <int kValue>
struct Constant {
  static constexpr int value = kValue;
};

/// body(Constant<0>), ..., body(Constant<3>): shifts need constants.
template <class Body>
KZ_INLINE void for_four(Body&& body) {
  body(Constant<0>{});
  body(Constant<1>{});
  body(Constant<2>{});
  body(Constant<3>{});
}

// --- codes per type: what lies where in a tile of 32 inputs ---------------------------------------------------------

/// Areas of one block (32 or 256 inputs) of a strip.
struct StripBlock {
  const uint8_t* codes;
  const uint8_t* high;
  const uint8_t* scales;
  const uint8_t* mins;
};

enum class Family {
  simple,  ///< 32 inputs per block: d, or d and m
  k45,     ///< Q4_K, Q5_K: 8 sub-blocks with six-bit scales and mins
  k6,      ///< Q6_K: 16 groups with int8 scales
};

/// Facts of a type. kZero is the code of weight 0 (taken off through the sums of codes).
template <Family kF, int kCodes, int kHigh, int kScales, int kMins, int kZeroCode, bool kIsSigned, bool kHasMin>
struct TypeFacts {
  static constexpr Family kFamily = kF;
  static constexpr int kCodesBytes = kCodes, kHighBytes = kHigh, kScalesBytes = kScales, kMinsBytes = kMins;
  static constexpr int kZero = kZeroCode;
  static constexpr bool kSigned = kIsSigned, kMin = kHasMin;
  static constexpr int kBlockBytes = kCodes + kHigh + kScales + kMins;
};

/// Line c of nibbles: inputs 8c..8c+3 low, 8c+4..8c+7 high.
template <class Isa>
KZ_INLINE void nibble_line(const uint8_t* tile, int c, int at, typename Isa::Bytes& lo, typename Isa::Bytes& hi) {
  const auto w = Isa::bytes(tile + 128 * c + at);
  lo = Isa::low(w);
  hi = Isa::high(w);
}

struct Q4_0 : TypeFacts<Family::simple, 512, 0, 64, 0, 8, false, false> {
  static constexpr int32_t kId = 2;
  template <class Isa, int c>
  KZ_INLINE static void line(const StripBlock& b, int, int at, typename Isa::Bytes& lo, typename Isa::Bytes& hi) {
    nibble_line<Isa>(b.codes, c, at, lo, hi);
  }
};

struct Q4_1 : TypeFacts<Family::simple, 512, 0, 64, 64, 0, false, true> {
  static constexpr int32_t kId = 3;
  template <class Isa, int c>
  KZ_INLINE static void line(const StripBlock& b, int, int at, typename Isa::Bytes& lo, typename Isa::Bytes& hi) {
    nibble_line<Isa>(b.codes, c, at, lo, hi);
  }
};

struct IQ4_NL : TypeFacts<Family::simple, 512, 0, 64, 0, 0, true, false> {
  static constexpr int32_t kId = 20;
  template <class Isa, int c>
  KZ_INLINE static void line(const StripBlock& b, int, int at, typename Isa::Bytes& lo, typename Isa::Bytes& hi) {
    static constexpr int8_t kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    nibble_line<Isa>(b.codes, c, at, lo, hi);
    lo = Isa::table16(kValues, lo);
    hi = Isa::table16(kValues, hi);
  }
};

struct Q8_0 : TypeFacts<Family::simple, 1024, 0, 64, 0, 0, true, false> {
  static constexpr int32_t kId = 8;
  template <class Isa, int c>
  KZ_INLINE static void line(const StripBlock& b, int, int at, typename Isa::Bytes& lo, typename Isa::Bytes& hi) {
    lo = Isa::bytes(b.codes + 256 * c + at);
    hi = Isa::bytes(b.codes + 256 * c + 128 + at);
  }
};

/// Bit `kFrom` of each byte of h, moved to bit 4.
template <class Isa, int kFrom>
KZ_INLINE typename Isa::Bytes bit_to_4(typename Isa::Bytes h) {
  if constexpr (kFrom < 4)
    return Isa::mask(Isa::template up<4 - kFrom>(h), 0x10);
  else if constexpr (kFrom == 4)
    return Isa::mask(h, 0x10);
  else
    return Isa::mask(Isa::template down<kFrom - 4>(h), 0x10);
}

/// Nibbles and the plane of fifth bits of tile `tile` of a block.
template <class Isa, int c>
KZ_INLINE void five_bit_line(const StripBlock& b, int tile, int at, typename Isa::Bytes& lo, typename Isa::Bytes& hi) {
  nibble_line<Isa>(b.codes + 512 * tile, c, at, lo, hi);
  const auto h = Isa::bytes(b.high + 128 * tile + at);
  lo = Isa::either(lo, bit_to_4<Isa, 2 * c>(h));
  hi = Isa::either(hi, bit_to_4<Isa, 2 * c + 1>(h));
}

struct Q5_0 : TypeFacts<Family::simple, 512, 128, 64, 0, 16, false, false> {
  static constexpr int32_t kId = 6;
  template <class Isa, int c>
  KZ_INLINE static void line(const StripBlock& b, int, int at, typename Isa::Bytes& lo, typename Isa::Bytes& hi) {
    five_bit_line<Isa, c>(b, 0, at, lo, hi);
  }
};

struct Q5_1 : TypeFacts<Family::simple, 512, 128, 64, 64, 0, false, true> {
  static constexpr int32_t kId = 7;
  template <class Isa, int c>
  KZ_INLINE static void line(const StripBlock& b, int, int at, typename Isa::Bytes& lo, typename Isa::Bytes& hi) {
    five_bit_line<Isa, c>(b, 0, at, lo, hi);
  }
};

struct Q4_K : TypeFacts<Family::k45, 4096, 0, 384, 128, 0, false, true> {
  static constexpr int32_t kId = 12;
  template <class Isa, int c>
  KZ_INLINE static void line(const StripBlock& b, int tile, int at, typename Isa::Bytes& lo, typename Isa::Bytes& hi) {
    nibble_line<Isa>(b.codes + 512 * tile, c, at, lo, hi);
  }
};

struct Q5_K : TypeFacts<Family::k45, 4096, 1024, 384, 128, 0, false, true> {
  static constexpr int32_t kId = 13;
  template <class Isa, int c>
  KZ_INLINE static void line(const StripBlock& b, int tile, int at, typename Isa::Bytes& lo, typename Isa::Bytes& hi) {
    five_bit_line<Isa, c>(b, tile, at, lo, hi);
  }
};

/// Bits kFrom, kFrom + 1 of each byte of h, moved to bits 4 and 5.
template <class Isa, int kFrom>
KZ_INLINE typename Isa::Bytes two_bits_to_4(typename Isa::Bytes h) {
  if constexpr (kFrom < 4)
    return Isa::mask(Isa::template up<4 - kFrom>(h), 0x30);
  else if constexpr (kFrom == 4)
    return Isa::mask(h, 0x30);
  else
    return Isa::mask(Isa::template down<kFrom - 4>(h), 0x30);
}

struct Q6_K : TypeFacts<Family::k6, 4096, 2048, 512, 64, 32, false, false> {
  static constexpr int32_t kId = 14;
  template <class Isa, int c>
  KZ_INLINE static void line(const StripBlock& b, int tile, int at, typename Isa::Bytes& lo, typename Isa::Bytes& hi) {
    nibble_line<Isa>(b.codes + 512 * tile, c, at, lo, hi);
    const auto h = Isa::bytes(b.high + 256 * tile + 128 * (c / 2) + at);
    lo = Isa::either(lo, two_bits_to_4<Isa, 4 * (c % 2)>(h));
    hi = Isa::either(hi, two_bits_to_4<Isa, 4 * (c % 2) + 2>(h));
  }
};

// --- the product ----------------------------------------------------------------------------------------------------

template <class Isa, class Type>
KZ_INLINE typename Isa::Ints dot(typename Isa::Ints sum, typename Isa::Bytes w, typename Isa::Bytes x) {
  if constexpr (Type::kSigned)
    return Isa::dot_signed(sum, w, x);
  else
    return Isa::dot(sum, w, x);
}

/// One register tile: kRows rows x kGroups column groups that start at column group g0 of one strip.
template <class Isa, class Type, int kRows, int kGroups>
class StripTile {
 public:
  using Bytes = typename Isa::Bytes;
  using Ints = typename Isa::Ints;
  using Floats = typename Isa::Floats;

  StripTile(const StripProductArgs& args, int64_t row, int g0)
      : x_(*args.x), row_(args.first_row + row), column_(g0 * Isa::kColumns) {
    for (int r = 0; r < kRows; ++r) {
      for (int g = 0; g < kGroups; ++g) sum_[r][g] = Isa::floats(0.0f);
    }
  }

  KZ_INLINE void block(const StripBlock& b, int64_t n) {
    if constexpr (Type::kFamily == Family::simple)
      simple_block(b, n);
    else if constexpr (Type::kFamily == Family::k45)
      k45_block(b, n);
    else
      k6_block(b, n);
  }

  KZ_INLINE void store(float* out, int64_t stride) const {
    for (int r = 0; r < kRows; ++r) {
      for (int g = 0; g < kGroups; ++g) Isa::store(out + r * stride + column_ + g * Isa::kColumns, sum_[r][g]);
    }
  }

 private:
  /// Index of activation block n of row r of the tile.
  KZ_INLINE int64_t index(int64_t n, int r) const { return n * x_.n_rows + row_ + r; }
  KZ_INLINE int offset(int g) const { return 4 * (column_ + g * Isa::kColumns); }

  /// Adds lines c0 .. c0 + kLines - 1 of one tile of 32 inputs to integer sums.
  template <int kFirst, int kLines>
  KZ_INLINE void add_lines(const StripBlock& b, int tile, int64_t n, Ints (&isum)[kRows][kGroups]) const {
    for_four([&](auto constant) {
      constexpr int c = decltype(constant)::value;
      if constexpr (c >= kFirst && c < kFirst + kLines) {
        Bytes lo[kGroups], hi[kGroups];
        for (int g = 0; g < kGroups; ++g) Type::template line<Isa, c>(b, tile, offset(g), lo[g], hi[g]);
        for (int r = 0; r < kRows; ++r) {
          const int8_t* codes = x_.codes + 32 * index(n, r) + 8 * c;
          const Bytes x0 = Isa::splat4(codes);
          const Bytes x1 = Isa::splat4(codes + 4);
          for (int g = 0; g < kGroups; ++g) isum[r][g] = dot<Isa, Type>(isum[r][g], lo[g], x0);
          for (int g = 0; g < kGroups; ++g) isum[r][g] = dot<Isa, Type>(isum[r][g], hi[g], x1);
        }
      }
    });
  }

  /// Integer sums that start at minus zero point times the sum of the activation codes.
  KZ_INLINE void start(int64_t n, int first_half, int halves, Ints (&isum)[kRows][kGroups]) const {
    constexpr int kZero = Type::kSigned ? Isa::kSignedZero : Type::kZero;
    for (int r = 0; r < kRows; ++r) {
      int32_t sum = 0;
      if constexpr (kZero != 0) {
        for (int h = first_half; h < first_half + halves; ++h) sum += x_.sums[2 * index(n, r) + h];
      }
      const Ints zero = Isa::ints(-kZero * sum);
      for (int g = 0; g < kGroups; ++g) isum[r][g] = zero;
    }
  }

  KZ_INLINE float code_sum(int64_t n, int r) const {
    const int32_t* sums = x_.sums + 2 * index(n, r);
    return static_cast<float>(sums[0] + sums[1]);
  }

  KZ_INLINE void simple_block(const StripBlock& b, int64_t n) {
    Ints isum[kRows][kGroups];
    start(n, 0, 2, isum);
    add_lines<0, 4>(b, 0, n, isum);
    for (int g = 0; g < kGroups; ++g) {
      const Floats d = Isa::half(b.scales + offset(g) / 2);
      for (int r = 0; r < kRows; ++r) {
        const Floats step = Isa::mul(d, Isa::floats(x_.scales[index(n, r)]));
        sum_[r][g] = Isa::fma(Isa::convert(isum[r][g]), step, sum_[r][g]);
      }
      if constexpr (Type::kMin) {
        const Floats m = Isa::half(b.mins + offset(g) / 2);
        for (int r = 0; r < kRows; ++r) {
          const float step = x_.scales[index(n, r)] * code_sum(n, r);
          sum_[r][g] = Isa::fma(m, Isa::floats(step), sum_[r][g]);
        }
      }
    }
  }

  /// Six-bit values of sub-block j as floats: which = 0 scales, 1 mins.
  KZ_INLINE Floats six(const StripBlock& b, int j, int which, int g) const {
    const int at = column_ + g * Isa::kColumns;
    return Isa::six(b.scales + 128 * which + 32 * (j & 3) + at, j < 4 ? 0 : 4,
                    b.scales + 256 + 64 * which + 32 * (j >> 2) + at, 2 * (j & 3));
  }

  // Sub-scales are integers and so are the block sums: their product stays below 2^24, so the float product is exact.
  KZ_INLINE void k45_block(const StripBlock& b, int64_t n) {
    for (int j = 0; j < 8; ++j) {
      const int64_t nj = 8 * n + j;
      Ints isum[kRows][kGroups];
      start(nj, 0, 0, isum);
      add_lines<0, 4>(b, j, nj, isum);
      for (int g = 0; g < kGroups; ++g) {
        const Floats d = Isa::half(b.mins + offset(g) / 2);
        const Floats dmin = Isa::half(b.mins + 64 + offset(g) / 2);
        const Floats scale = six(b, j, 0, g);
        const Floats min = six(b, j, 1, g);
        for (int r = 0; r < kRows; ++r) {
          const float dx = x_.scales[index(nj, r)];
          sum_[r][g] = Isa::fma(Isa::mul(Isa::convert(isum[r][g]), scale), Isa::mul(d, Isa::floats(dx)), sum_[r][g]);
          sum_[r][g] =
              Isa::fma(Isa::mul(Isa::floats(code_sum(nj, r)), min), Isa::mul(dmin, Isa::floats(-dx)), sum_[r][g]);
        }
      }
    }
  }

  KZ_INLINE void k6_block(const StripBlock& b, int64_t n) {
    for (int j = 0; j < 8; ++j) {
      const int64_t nj = 8 * n + j;
      Ints first[kRows][kGroups], second[kRows][kGroups];
      start(nj, 0, 1, first);
      add_lines<0, 2>(b, j, nj, first);
      start(nj, 1, 1, second);
      add_lines<2, 2>(b, j, nj, second);
      for (int g = 0; g < kGroups; ++g) {
        const int at = column_ + g * Isa::kColumns;
        const Floats d = Isa::half(b.mins + 2 * at);
        const Floats s0 = Isa::int8(b.scales + 64 * j + at);
        const Floats s1 = Isa::int8(b.scales + 64 * j + 32 + at);
        for (int r = 0; r < kRows; ++r) {
          const Floats whole =
              Isa::add(Isa::mul(Isa::convert(first[r][g]), s0), Isa::mul(Isa::convert(second[r][g]), s1));
          const Floats step = Isa::mul(d, Isa::floats(x_.scales[index(nj, r)]));
          sum_[r][g] = Isa::fma(whole, step, sum_[r][g]);
        }
      }
    }
  }

  const Q8Rows& x_;
  int64_t row_;
  int column_;
  Floats sum_[kRows][kGroups];
};

/// Areas of block b (of n_blocks) of a strip: blocks lie in groups of two, areas one after the other inside a group.
template <class Type>
KZ_INLINE StripBlock strip_block(const std::byte* strip, int64_t b, int64_t n_blocks) {
  const int64_t second = b & 1;
  const int64_t in_group = (b | 1) < n_blocks ? 2 : 1;
  const auto* group = reinterpret_cast<const uint8_t*>(strip) + (b - second) * Type::kBlockBytes;
  StripBlock block;
  block.codes = group + second * Type::kCodesBytes;
  group += in_group * Type::kCodesBytes;
  block.high = group + second * Type::kHighBytes;
  group += in_group * Type::kHighBytes;
  block.scales = group + second * Type::kScalesBytes;
  group += in_group * Type::kScalesBytes;
  block.mins = group + second * Type::kMinsBytes;
  return block;
}

/// Tiles of kRows rows over one strip. Decode (few rows) takes all columns at once so that memory is read in one
/// sweep, with software prefetch ahead; prefill takes kTileGroups at a time and reads the strip from the cache.
template <class Isa, class Type, int kRows, int kGroups, bool kPrefetch>
void strip_rows(const StripProductArgs& args, const std::byte* strip, int64_t row, float* out) {
  constexpr int64_t kInputs = Type::kFamily == Family::simple ? 32 : 256;
  constexpr int64_t kAhead = kInputs == 32 ? 4 * Type::kBlockBytes : (Type::kBlockBytes + 1) / 2;
  const int64_t n_blocks = args.cols / kInputs;
  for (int g = 0; g < 32 / Isa::kColumns; g += kGroups) {
    StripTile<Isa, Type, kRows, kGroups> tile(args, row, g);
    for (int64_t n = 0; n < n_blocks; ++n) {
      if constexpr (kPrefetch) {
        const std::byte* ahead = strip + n * Type::kBlockBytes + kAhead;
        for (int64_t at = 0; at < Type::kBlockBytes; at += 64) __builtin_prefetch(ahead + at, 0, 3);
      }
      tile.block(strip_block<Type>(strip, n, n_blocks), n);
    }
    tile.store(out, args.out_stride);
  }
}

template <class Isa, class Type, int kRows>
void strip_tail(const StripProductArgs& args, const std::byte* strip, int64_t row, int64_t n, float* out) {
  if constexpr (kRows > 0) {
    if (n == kRows)
      return strip_rows < Isa, Type, kRows, kRows == 1 ? 32 / Isa::kColumns : Isa::kTileGroups,
             true > (args, strip, row, out);
    strip_tail<Isa, Type, kRows - 1>(args, strip, row, n, out);
  }
}

template <class Isa, class Type>
void strip_product(const StripProductArgs& args) {
  for (int64_t s = 0; s < args.n_strips; ++s) {
    const std::byte* strip = args.strips + s * args.stride_bytes;
    float* out = args.out + 32 * s;
    int64_t row = 0;
    for (; row + Isa::kTileRows <= args.n_rows; row += Isa::kTileRows) {
      strip_rows<Isa, Type, Isa::kTileRows, Isa::kTileGroups, false>(args, strip, row, out + row * args.out_stride);
    }
    strip_tail<Isa, Type, Isa::kTileRows - 1>(args, strip, row, args.n_rows - row, out + row * args.out_stride);
  }
}

template <class Isa>
void product_of_type(const StripProductArgs& args) {
  switch (args.gguf_type) {
    case Q4_0::kId:
      return strip_product<Isa, Q4_0>(args);
    case Q4_1::kId:
      return strip_product<Isa, Q4_1>(args);
    case Q5_0::kId:
      return strip_product<Isa, Q5_0>(args);
    case Q5_1::kId:
      return strip_product<Isa, Q5_1>(args);
    case Q8_0::kId:
      return strip_product<Isa, Q8_0>(args);
    case Q4_K::kId:
      return strip_product<Isa, Q4_K>(args);
    case Q5_K::kId:
      return strip_product<Isa, Q5_K>(args);
    case Q6_K::kId:
      return strip_product<Isa, Q6_K>(args);
    case IQ4_NL::kId:
      return strip_product<Isa, IQ4_NL>(args);
    default:
      return;
  }
}

inline bool knows_strip_type(int32_t id) {
  return id == Q4_0::kId || id == Q4_1::kId || id == Q5_0::kId || id == Q5_1::kId || id == Q8_0::kId ||
         id == Q4_K::kId || id == Q5_K::kId || id == Q6_K::kId || id == IQ4_NL::kId;
}

}  // namespace
}  // namespace kz
