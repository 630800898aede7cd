// 16-bit float formats <-> float32.
#pragma once

#include <bit>
#include <cstdint>

namespace kz {

/// IEEE binary16 -> float32, exact.
inline float f16_to_f32(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 0x1fu;
  const uint32_t fraction = h & 0x3ffu;
  if (exponent == 0) {  // zero and denormals: fraction * 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

/// float32 -> IEEE binary16, round to nearest even, overflow to infinity, NaN stays a (quiet) NaN.
uint16_t f32_to_f16(float x);

/// bfloat16 -> float32, exact.
inline float bf16_to_f32(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

/// float32 -> bfloat16, round to nearest even, NaN stays a quiet NaN.
uint16_t f32_to_bf16(float x);

}  // namespace kz
