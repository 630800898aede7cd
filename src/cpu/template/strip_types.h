// What lies where in a strip, per block type, and the float step of class q8. Part of the strip kernel template, which
// is written once and compiled once per instruction set; cpu/strip/strip.h has the layout.
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

/// What the float step of a tile of 32 inputs looks like.
enum class Form {
  plain,     ///< one block sum, one scale
  with_min,  ///< and a minimum times the sum of the activation codes
  halves,    ///< two block sums, each with its integer scale
};

/// Facts of a type. kZero is the code of weight 0 (taken off through the sums of codes).
template <Family kF, int kCodes, int kHigh, int kScales, int kMins, int kZeroCode, bool kIsSigned, bool kHasMin>
struct TypeFacts {
  static constexpr Family kFamily = kF;
  static constexpr Form kForm = kHasMin ? Form::with_min : kF == Family::k6 ? Form::halves : Form::plain;
  static constexpr int kTiles = kF == Family::simple ? 1 : 8;  // of 32 inputs in a block
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

/// Floats of tile j (32 inputs) of a block: what the float step multiplies, for one vector of columns from column `at`.
template <class Isa>
struct TileScales {
  typename Isa::Floats d;       ///< of the block sum: d, or d times the six-bit scale (11 + 6 bits: exact)
  typename Isa::Floats second;  ///< types with a minimum: what dx * (sum of codes) is multiplied with; Q6_K: scale of
                                ///< inputs 0..15
  typename Isa::Floats third;   ///< Q6_K: scale of inputs 16..31
};

template <class Isa, class Type>
KZ_INLINE TileScales<Isa> tile_scales(const StripBlock& b, int j, int at) {
  TileScales<Isa> s;
  if constexpr (Type::kFamily == Family::simple) {
    s.d = Isa::half(b.scales + 2 * at);
    if constexpr (Type::kMin) s.second = Isa::half(b.mins + 2 * at);
  } else if constexpr (Type::kFamily == Family::k45) {
    const auto six = [&](int which) {
      return Isa::six(b.scales + 128 * which + 32 * (j & 3) + at, j < 4 ? 0 : 4,
                      b.scales + 256 + 64 * which + 32 * (j >> 2) + at, 2 * (j & 3));
    };
    s.d = Isa::mul(Isa::half(b.mins + 2 * at), six(0));
    s.second = Isa::mul(Isa::mul(Isa::half(b.mins + 64 + 2 * at), six(1)), Isa::floats(-1.0f));
  } else {
    s.d = Isa::half(b.mins + 2 * at);
    s.second = Isa::int8(b.scales + 64 * j + at);
    s.third = Isa::int8(b.scales + 64 * j + 32 + at);
  }
  return s;
}

/// One step of a sum: block_sum is exact (for Q6_K of inputs 0..15, second_sum of 16..31).
template <class Isa, Form kForm>
KZ_INLINE typename Isa::Floats float_step(typename Isa::Floats sum, typename Isa::Ints block_sum,
                                          typename Isa::Ints second_sum, const TileScales<Isa>& s, float dx,
                                          float scaled_sum) {
  auto whole = Isa::convert(block_sum);
  if constexpr (kForm == Form::halves)
    whole = Isa::fma(Isa::convert(second_sum), s.third, Isa::mul(whole, s.second));  // below 2^24: exact
  sum = Isa::fma(whole, Isa::mul(s.d, Isa::floats(dx)), sum);
  if constexpr (kForm == Form::with_min) sum = Isa::fma(s.second, Isa::floats(scaled_sum), sum);
  return sum;
}

}  // namespace
}  // namespace kz
