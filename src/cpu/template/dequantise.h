// Block types -> float32, for the types that models are full of. Part of the kernel template (see vector.h).
//
// Same formulas and the same order of float operations as core's dequantise_row(), which does the other types; plain
// loops that compilers turn into the vectors of the table. Layouts: docs/blocks.md.
#pragma once

#include "cpu/template/vector.h"

namespace kz {
namespace {

KZ_INLINE uint32_t load_u16(const std::byte* p) {
  uint16_t x;
  __builtin_memcpy(&x, p, 2);
  return x;
}

KZ_INLINE uint32_t load_u32(const std::byte* p) {
  uint32_t x;
  __builtin_memcpy(&x, p, 4);
  return x;
}

KZ_INLINE uint32_t load_u8(const std::byte* p) { return static_cast<uint32_t>(*p); }

KZ_INLINE int32_t load_i8(const std::byte* p) { return static_cast<int32_t>(static_cast<int8_t>(*p)); }

KZ_INLINE float bits_to_f32(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}

KZ_INLINE uint32_t f32_to_bits(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}

/// IEEE binary16 -> float32, without branches. Zero and denormals are fraction * 2^-24; the top exponent stays on top.
KZ_INLINE float half_to_f32(uint32_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  const uint32_t small = f32_to_bits(static_cast<float>(static_cast<int32_t>(half & 0x3ffu)) * 0x1p-24f);
  const uint32_t top = (magnitude << 13) | 0x7f800000u;
  const uint32_t finite = magnitude < 0x400u ? small : normal;
  return bits_to_f32(sign | (magnitude >= 0x7c00u ? top : finite));
}

KZ_INLINE float load_half(const std::byte* p) { return half_to_f32(load_u16(p)); }

/// half_to_f32() in every lane.
template <int kWidth>
KZ_INLINE typename Lanes<kWidth>::F halves_to_f32(const std::byte* in) {
  using F = typename Lanes<kWidth>::F;
  using I = typename Lanes<kWidth>::I;
  using H = typename LanesOf<uint16_t, kLanes, kWidth>::Type;
  using S = typename LanesOf<int32_t, kLanes, kWidth>::Type;
  const auto splat = [](uint32_t x) { return Ops<I>::splat(x); };
  const I half = Between<I, H>::value(Ops<H>::load(in));
  const I magnitude = half & splat(0x7fff);
  const I shifted = Ops<I>::shift_left(magnitude, 13);
  const F small = Between<F, S>::value(Between<S, I>::bits(half & splat(0x3ff))) * Lanes<kWidth>::splat(0x1p-24f);
  const I finite = Ops<I>::less(magnitude, splat(0x400), Between<I, F>::bits(small), shifted + splat(112u << 23));
  const I value = Ops<I>::less(magnitude, splat(0x7c00), finite, shifted | splat(0x7f800000));
  const I sign = Ops<I>::shift_left(half & splat(0x8000), 16);
  return Between<F, I>::bits(value | sign);
}

template <int kWidth>
void dequantise_f16(const std::byte* in, float* out, int64_t n) {
  using F = typename Lanes<kWidth>::F;
  int64_t at = 0;
  for (; at + kLanes <= n; at += kLanes) Ops<F>::store(out + at, halves_to_f32<kWidth>(in + 2 * at));
  for (; at < n; ++at) out[at] = half_to_f32(load_u16(in + 2 * at));
}

inline void dequantise_bf16(const std::byte* in, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = bits_to_f32(load_u16(in + 2 * i) << 16);
}

inline void dequantise_q4_0(const std::byte* block, float* out, int64_t n) {
  for (int64_t at = 0; at < n; at += 32, block += 18) {
    const float d = load_half(block);
    for (int i = 0; i < 16; ++i) {
      const int32_t q = static_cast<int32_t>(load_u8(block + 2 + i));
      out[at + i] = static_cast<float>((q & 15) - 8) * d;
      out[at + 16 + i] = static_cast<float>((q >> 4) - 8) * d;
    }
  }
}

inline void dequantise_q4_1(const std::byte* block, float* out, int64_t n) {
  for (int64_t at = 0; at < n; at += 32, block += 20) {
    const float d = load_half(block), m = load_half(block + 2);
    for (int i = 0; i < 16; ++i) {
      const int32_t q = static_cast<int32_t>(load_u8(block + 4 + i));
      out[at + i] = static_cast<float>(q & 15) * d + m;
      out[at + 16 + i] = static_cast<float>(q >> 4) * d + m;
    }
  }
}

inline void dequantise_q5_0(const std::byte* block, float* out, int64_t n) {
  for (int64_t at = 0; at < n; at += 32, block += 22) {
    const float d = load_half(block);
    const uint32_t high = load_u32(block + 2);
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t q = load_u8(block + 6 + i);
      const uint32_t low_q = (q & 15) | ((high >> i) & 1) << 4;
      const uint32_t high_q = (q >> 4) | ((high >> (i + 16)) & 1) << 4;
      out[at + i] = static_cast<float>(static_cast<int32_t>(low_q) - 16) * d;
      out[at + 16 + i] = static_cast<float>(static_cast<int32_t>(high_q) - 16) * d;
    }
  }
}

inline void dequantise_q5_1(const std::byte* block, float* out, int64_t n) {
  for (int64_t at = 0; at < n; at += 32, block += 24) {
    const float d = load_half(block), m = load_half(block + 2);
    const uint32_t high = load_u32(block + 4);
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t q = load_u8(block + 8 + i);
      const uint32_t low_q = (q & 15) | ((high >> i) & 1) << 4;
      const uint32_t high_q = (q >> 4) | ((high >> (i + 16)) & 1) << 4;
      out[at + i] = static_cast<float>(static_cast<int32_t>(low_q)) * d + m;
      out[at + 16 + i] = static_cast<float>(static_cast<int32_t>(high_q)) * d + m;
    }
  }
}

inline void dequantise_q8_0(const std::byte* block, float* out, int64_t n) {
  for (int64_t at = 0; at < n; at += 32, block += 34) {
    const float d = load_half(block);
    for (int i = 0; i < 32; ++i) out[at + i] = static_cast<float>(load_i8(block + 2 + i)) * d;
  }
}

struct ScaleAndMin {
  float scale, min;
};

/// Six-bit scale and minimum of sub-block j (0..7), as Q4_K and Q5_K pack them into twelve bytes.
KZ_INLINE ScaleAndMin packed_scale(const std::byte* q, int j) {
  if (j < 4) {
    return {static_cast<float>(static_cast<int32_t>(load_u8(q + j) & 63)),
            static_cast<float>(static_cast<int32_t>(load_u8(q + j + 4) & 63))};
  }
  const uint32_t low = load_u8(q + j + 4);
  const uint32_t scale = (low & 15) | (load_u8(q + j - 4) >> 6) << 4;
  const uint32_t min = (low >> 4) | (load_u8(q + j) >> 6) << 4;
  return {static_cast<float>(static_cast<int32_t>(scale)), static_cast<float>(static_cast<int32_t>(min))};
}

inline void dequantise_q4_k(const std::byte* block, float* out, int64_t n) {
  for (int64_t at = 0; at < n; at += 256, block += 144) {
    const float d = load_half(block), dmin = load_half(block + 2);
    for (int g = 0; g < 4; ++g) {
      const ScaleAndMin a = packed_scale(block + 4, 2 * g), b = packed_scale(block + 4, 2 * g + 1);
      const float d1 = d * a.scale, m1 = dmin * a.min, d2 = d * b.scale, m2 = dmin * b.min;
      const std::byte* qs = block + 16 + 32 * g;
      float* to = out + at + 64 * g;
      for (int i = 0; i < 32; ++i) to[i] = d1 * static_cast<float>(static_cast<int32_t>(load_u8(qs + i) & 15)) - m1;
      to += 32;
      for (int i = 0; i < 32; ++i) to[i] = d2 * static_cast<float>(static_cast<int32_t>(load_u8(qs + i) >> 4)) - m2;
    }
  }
}

inline void dequantise_q5_k(const std::byte* block, float* out, int64_t n) {
  for (int64_t at = 0; at < n; at += 256, block += 176) {
    const float d = load_half(block), dmin = load_half(block + 2);
    const std::byte* high = block + 16;
    for (int g = 0; g < 4; ++g) {
      const ScaleAndMin a = packed_scale(block + 4, 2 * g), b = packed_scale(block + 4, 2 * g + 1);
      const float d1 = d * a.scale, m1 = dmin * a.min, d2 = d * b.scale, m2 = dmin * b.min;
      const std::byte* qs = block + 48 + 32 * g;
      float* to = out + at + 64 * g;
      for (int i = 0; i < 32; ++i) {
        const uint32_t q = (load_u8(qs + i) & 15) | ((load_u8(high + i) >> (2 * g)) & 1) << 4;
        to[i] = d1 * static_cast<float>(static_cast<int32_t>(q)) - m1;
      }
      for (int i = 0; i < 32; ++i) {
        const uint32_t q = (load_u8(qs + i) >> 4) | ((load_u8(high + i) >> (2 * g + 1)) & 1) << 4;
        to[32 + i] = d2 * static_cast<float>(static_cast<int32_t>(q)) - m2;
      }
    }
  }
}

/// Elements 32p .. 32p + 31 of one half of a Q6_K block.
template <int p>
KZ_INLINE void dequantise_q6_k_quarter(const std::byte* low, const std::byte* high, const std::byte* scales, float d,
                                       float* out) {
  for (int group = 0; group < 2; ++group) {
    const float scale = d * static_cast<float>(load_i8(scales + 2 * p + group));
    for (int i = 16 * group; i < 16 * group + 16; ++i) {
      const uint32_t b = load_u8(low + 32 * (p & 1) + i);
      const uint32_t q = (p < 2 ? b & 15 : b >> 4) | ((load_u8(high + i) >> (2 * p)) & 3) << 4;
      out[32 * p + i] = scale * static_cast<float>(static_cast<int32_t>(q) - 32);
    }
  }
}

inline void dequantise_q6_k(const std::byte* block, float* out, int64_t n) {
  for (int64_t at = 0; at < n; at += 256, block += 210) {
    const float d = load_half(block + 208);
    for (int half = 0; half < 2; ++half) {
      const std::byte *low = block + 64 * half, *high = block + 128 + 32 * half, *scales = block + 192 + 8 * half;
      float* to = out + at + 128 * half;
      dequantise_q6_k_quarter<0>(low, high, scales, d, to);
      dequantise_q6_k_quarter<1>(low, high, scales, d, to);
      dequantise_q6_k_quarter<2>(low, high, scales, d, to);
      dequantise_q6_k_quarter<3>(low, high, scales, d, to);
    }
  }
}

/// By GGUF type id; null for the types that core does.
template <int kWidth>
DequantiseKernel dequantise_kernel(int32_t gguf_type) {
  switch (gguf_type) {
    case 1:
      return dequantise_f16<kWidth>;
    case 2:
      return dequantise_q4_0;
    case 3:
      return dequantise_q4_1;
    case 6:
      return dequantise_q5_0;
    case 7:
      return dequantise_q5_1;
    case 8:
      return dequantise_q8_0;
    case 12:
      return dequantise_q4_k;
    case 13:
      return dequantise_q5_k;
    case 14:
      return dequantise_q6_k;
    case 30:
      return dequantise_bf16;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace kz
