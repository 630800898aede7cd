// The rate of vpdpbusd on 32-byte vectors.
#ifndef __AVXVNNI__
#error "compile this file with -mavx2 -mavxvnni"
#endif
#include <immintrin.h>

#include "cpu/peak_loop.h"

namespace kz {
namespace {

constexpr int kChains = 14;

int32_t run(int64_t n_rounds) {
  const __m256i w = _mm256_set1_epi32(0x01020304), x = _mm256_set1_epi32(0x01ff01ff);
  __m256i sums[kChains];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (int64_t round = 0; round < n_rounds; ++round) {
#pragma GCC unroll 14
    for (int i = 0; i < kChains; ++i) sums[i] = _mm256_dpbusd_avx_epi32(sums[i], w, x);
  }
  __m256i all = sums[0];
  for (int i = 1; i < kChains; ++i) all = _mm256_xor_si256(all, sums[i]);
  alignas(32) int32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), all);
  return lanes[0] + lanes[7];
}

}  // namespace

extern const PeakLoop kPeakAvxVnni;
constexpr PeakLoop kPeakAvxVnni = {"avxvnni", kChains * 32, run};

}  // namespace kz
