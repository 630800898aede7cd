// Activations as 8-bit codes, written once and compiled once per instruction set. Part of the strip kernel template.
#pragma once

#include "cpu/strip_kernels.h"

namespace kz {
namespace {

/// What goes with the codes of block `at`: its scale and the sums of both halves, as inner loops want them.
inline void store_block_facts(const Q8Rows& to, int64_t at, float d, int32_t first_sum, int32_t second_sum) {
  const int32_t sum = first_sum + second_sum;
  to.sums[2 * at] = first_sum;
  to.sums[2 * at + 1] = second_sum;
  to.scales[at] = d;
  to.starts[at] = -128 * sum;
  to.scaled_sums[at] = d * static_cast<float>(sum);
}

/// Block `at` from 32 values: d = max|x| / 127, codes rint(x / d) clamped to [-127, 127] (ties to even), and the sums.
/// Rounding adds and takes off 1.5 * 2^23: the same bits in every mode of compilation, and defined for NaN.
/// Magnitudes are compared as integers, which has the order of floats and needs no rules for NaN: compilers make
/// vectors of it.
inline void quantise_block(const float* x, int64_t at, const Q8Rows& to) {
  constexpr float kRound = 12582912.0f;
  int32_t largest_bits = 0;
  for (int i = 0; i < 32; ++i) {
    int32_t bits;
    __builtin_memcpy(&bits, x + i, 4);
    bits &= 0x7fffffff;
    largest_bits = largest_bits < bits ? bits : largest_bits;
  }
  float largest;
  __builtin_memcpy(&largest, &largest_bits, 4);
  const float d = largest / 127.0f;
  const float inverse = d > 0.0f ? 1.0f / d : 0.0f;
  int32_t q[32];
  for (int i = 0; i < 32; ++i) {
    const float rounded = x[i] * inverse + kRound;
    int32_t bits;
    __builtin_memcpy(&bits, &rounded, 4);
    const int32_t code = bits - 0x4b400000;
    q[i] = code > 127 ? 127 : code < -127 ? -127 : code;
  }
  int32_t sums[2];
  for (int half = 0; half < 2; ++half) {
    int32_t sum = 0;
    for (int i = 0; i < 16; ++i) sum += q[16 * half + i];
    sums[half] = sum;
  }
  int8_t natural[32];
  for (int i = 0; i < 32; ++i) natural[i] = static_cast<int8_t>(q[i]);
  uint32_t words[8];
  __builtin_memcpy(words, natural, 32);
  for (uint32_t& w : words)
    w = (w & 0xff0000ffu) | ((w >> 8) & 0xff00u) | ((w & 0xff00u) << 8);  // the middle two swapped
  __builtin_memcpy(to.codes + 32 * at, words, 32);
  store_block_facts(to, at, d, sums[0], sums[1]);
}

inline void quantise_strip_row(const float* x, int64_t r, const Q8Rows& to) {
  for (int64_t b = 0; b < to.n_blocks; ++b) quantise_block(x + 32 * b, b * to.n_rows + r, to);
}

}  // namespace
}  // namespace kz
