// What reading and writing blocks share: unaligned loads, constants and bit fields. Facts: docs/blocks.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/half.h"

namespace kz::blocks {

constexpr int kSmall = 32;   // elements of the simple types' blocks
constexpr int kSuper = 256;  // elements of the K and IQ4_XS blocks

inline uint16_t load_u16(const uint8_t* p) { return static_cast<uint16_t>(p[0] | p[1] << 8); }

inline uint32_t load_u32(const uint8_t* p) { return uint32_t{load_u16(p)} | uint32_t{load_u16(p + 2)} << 16; }

inline float load_f16(const uint8_t* p) { return f16_to_f32(load_u16(p)); }

inline void store_u16(uint8_t* p, uint16_t x) {
  p[0] = static_cast<uint8_t>(x & 0xffu);
  p[1] = static_cast<uint8_t>(x >> 8);
}

inline void store_u32(uint8_t* p, uint32_t x) {
  store_u16(p, static_cast<uint16_t>(x & 0xffffu));
  store_u16(p + 2, static_cast<uint16_t>(x >> 16));
}

inline void store_f16(uint8_t* p, float x) { store_u16(p, f32_to_f16(x)); }

/// The 6-bit scale and minimum of sub-block j (0..7) in the 12 packed bytes of Q4_K and Q5_K.
struct ScaleMin {
  int scale;
  int min;
};
inline ScaleMin load_scale_min(const uint8_t* q, int j) {
  if (j < 4) return {q[j] & 63, q[j + 4] & 63};
  return {(q[j + 4] & 15) | (q[j - 4] >> 6) << 4, (q[j + 4] >> 4) | (q[j] >> 6) << 4};
}

}  // namespace kz::blocks
