// The rate of vpdpbusd on 64-byte vectors.
#ifndef __AVX512VNNI__
#error "compile this file with -mavx512f -mavx512vnni"
#endif
#include <immintrin.h>

#include "cpu/peak_loop.h"

namespace kz {
namespace {

constexpr int kChains = 14;  // latency 5, two a cycle, and some more to be safe

int32_t run(int64_t n_rounds) {
  const __m512i w = _mm512_set1_epi32(0x01020304), x = _mm512_set1_epi32(0x01ff01ff);
  __m512i sums[kChains];
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (int64_t round = 0; round < n_rounds; ++round) {
#pragma GCC unroll 14
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_dpbusd_epi32(sums[i], w, x);
  }
  __m512i all = sums[0];
  for (int i = 1; i < kChains; ++i) all = _mm512_xor_si512(all, sums[i]);
  alignas(64) int32_t lanes[16];
  _mm512_store_si512(lanes, all);
  return lanes[0] + lanes[15];
}

}  // namespace

extern const PeakLoop kPeakAvx512Vnni;
constexpr PeakLoop kPeakAvx512Vnni = {"avx512vnni", kChains * 64, run};

}  // namespace kz
