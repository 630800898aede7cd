// The scalar types and the types with 32 elements per block.
//
// Each loop body is free of branches and its trip count is a constant, so that the compiler vectorises it; the blocks
// and the output never overlap (__restrict). The order of the float operations is the contract of docs/blocks.md.
#include "core/blocks/dequantise.h"

#include <bit>

#include "core/blocks/codebook.h"
#include "core/blocks/layout.h"

namespace kz::blocks {
namespace {

constexpr int kHalf = kSmall / 2;

/// Bit i, for loops where a shift by the loop index would keep the compiler from vectorising.
constexpr struct BitTable {
  uint32_t bit[kSmall];
  constexpr BitTable() : bit() {
    for (int i = 0; i < kSmall; ++i) bit[i] = uint32_t{1} << i;
  }
} kBits;

/// Nibbles plus the fifth bits of qh: codes 0..31 in element order.
inline void unpack_five_bits(const uint8_t* __restrict qs, uint32_t qh, int32_t* __restrict codes) {
  for (int j = 0; j < kHalf; ++j) codes[j] = (qs[j] & 15) + ((qh & kBits.bit[j]) != 0 ? 16 : 0);
  for (int j = 0; j < kHalf; ++j) codes[j + kHalf] = (qs[j] >> 4) + ((qh & kBits.bit[j + kHalf]) != 0 ? 16 : 0);
}

/// 2^(e-128), which is a denormal for e = 0 and 1.
inline float half_power_of_two(uint8_t e) {
  return std::bit_cast<float>(e < 2 ? uint32_t{0x00200000} << e : (uint32_t{e} - 1u) << 23);
}

}  // namespace

void dequantise_f16(const uint8_t* __restrict in, float* __restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint16_t h;
    std::memcpy(&h, in + 2 * i, sizeof h);
    out[i] = f16_to_f32(h);
  }
}

void dequantise_bf16(const uint8_t* __restrict in, float* __restrict out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint16_t h;
    std::memcpy(&h, in + 2 * i, sizeof h);
    out[i] = bf16_to_f32(h);
  }
}

void dequantise_q4_0(const uint8_t* __restrict in, float* __restrict out, int64_t n) {
  for (; n > 0; n -= kSmall, in += 18, out += kSmall) {
    const float d = load_f16(in);
    const uint8_t* qs = in + 2;
    for (int j = 0; j < kHalf; ++j) out[j] = static_cast<float>((qs[j] & 15) - 8) * d;
    for (int j = 0; j < kHalf; ++j) out[j + kHalf] = static_cast<float>((qs[j] >> 4) - 8) * d;
  }
}

void dequantise_q4_1(const uint8_t* __restrict in, float* __restrict out, int64_t n) {
  for (; n > 0; n -= kSmall, in += 20, out += kSmall) {
    const float d = load_f16(in);
    const float m = load_f16(in + 2);
    const uint8_t* qs = in + 4;
    for (int j = 0; j < kHalf; ++j) out[j] = static_cast<float>(qs[j] & 15) * d + m;
    for (int j = 0; j < kHalf; ++j) out[j + kHalf] = static_cast<float>(qs[j] >> 4) * d + m;
  }
}

void dequantise_q5_0(const uint8_t* __restrict in, float* __restrict out, int64_t n) {
  for (; n > 0; n -= kSmall, in += 22, out += kSmall) {
    const float d = load_f16(in);
    int32_t codes[kSmall];
    unpack_five_bits(in + 6, load_u32(in + 2), codes);
    for (int i = 0; i < kSmall; ++i) out[i] = static_cast<float>(codes[i] - 16) * d;
  }
}

void dequantise_q5_1(const uint8_t* __restrict in, float* __restrict out, int64_t n) {
  for (; n > 0; n -= kSmall, in += 24, out += kSmall) {
    const float d = load_f16(in);
    const float m = load_f16(in + 2);
    int32_t codes[kSmall];
    unpack_five_bits(in + 8, load_u32(in + 4), codes);
    for (int i = 0; i < kSmall; ++i) out[i] = static_cast<float>(codes[i]) * d + m;
  }
}

void dequantise_q8_0(const uint8_t* __restrict in, float* __restrict out, int64_t n) {
  for (; n > 0; n -= kSmall, in += 34, out += kSmall) {
    const float d = load_f16(in);
    const uint8_t* qs = in + 2;
    for (int i = 0; i < kSmall; ++i) out[i] = static_cast<float>(static_cast<int8_t>(qs[i])) * d;
  }
}

void dequantise_iq4_nl(const uint8_t* __restrict in, float* __restrict out, int64_t n) {
  for (; n > 0; n -= kSmall, in += 18, out += kSmall) {
    const float d = load_f16(in);
    const uint8_t* qs = in + 2;
    for (int j = 0; j < kHalf; ++j) {
      out[j] = d * kNonLinear4[qs[j] & 15];
      out[j + kHalf] = d * kNonLinear4[qs[j] >> 4];
    }
  }
}

void dequantise_mxfp4(const uint8_t* __restrict in, float* __restrict out, int64_t n) {
  for (; n > 0; n -= kSmall, in += 17, out += kSmall) {
    const float d = half_power_of_two(in[0]);
    const uint8_t* qs = in + 1;
    for (int j = 0; j < kHalf; ++j) {
      out[j] = kE2m1Doubled[qs[j] & 15] * d;
      out[j + kHalf] = kE2m1Doubled[qs[j] >> 4] * d;
    }
  }
}

}  // namespace kz::blocks
