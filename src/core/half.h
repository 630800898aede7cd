// 16-bit float formats <-> float32.
#pragma once

#include <bit>
#include <cstdint>

namespace kz {

/// IEEE binary16 -> float32, exact (a NaN keeps its payload). Computes both cases and selects by masks, so that a loop
/// over it has no branch and vectorises.
inline float f16_to_f32(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7fffu;
  const uint32_t bias = magnitude >= 0x7c00u ? 224u << 23 : 112u << 23;  // infinity and NaN move to exponent 255
  const uint32_t normal = (magnitude << 13) + bias;
  // Zero and denormals: the fraction counts steps of 2^-24, which is the spacing of floats in [0.5, 1).
  const float small = std::bit_cast<float>(magnitude | 0x3f000000u) - 0.5f;
  const uint32_t is_small = 0u - static_cast<uint32_t>(magnitude < 0x0400u);  // all ones or zero
  return std::bit_cast<float>((std::bit_cast<uint32_t>(small) & is_small) | (normal & ~is_small) | sign);
}

/// float32 -> IEEE binary16, round to nearest even, overflow to infinity, NaN stays a (quiet) NaN.
uint16_t f32_to_f16(float x);

/// bfloat16 -> float32, exact.
inline float bf16_to_f32(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

/// float32 -> bfloat16, round to nearest even, NaN stays a quiet NaN.
uint16_t f32_to_bf16(float x);

}  // namespace kz
