// The rate of vpmaddubsw, vpmaddwd and vpaddd together, which is what 8-bit products take without VNNI.
#ifndef __AVX2__
#error "compile this file with -mavx2"
#endif
#include <immintrin.h>

#include "cpu/peak_loop.h"

namespace kz {
namespace {

constexpr int kChains = 10;

int32_t run(int64_t n_rounds) {
  __m256i w = _mm256_set1_epi32(0x01020304);
  const __m256i x = _mm256_set1_epi32(0x01ff01ff), ones = _mm256_set1_epi16(1);
  __m256i sums[kChains];
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (int64_t round = 0; round < n_rounds; ++round) {
#pragma GCC unroll 10
    for (int i = 0; i < kChains; ++i) {
      __asm__ volatile("" : "+x"(w));  // w may have changed, as far as the compiler knows: no product is done once only
      sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), ones));
    }
  }
  __m256i all = sums[0];
  for (int i = 1; i < kChains; ++i) all = _mm256_xor_si256(all, sums[i]);
  alignas(32) int32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), all);
  return lanes[0] + lanes[7];
}

}  // namespace

extern const PeakLoop kPeakAvx2;
constexpr PeakLoop kPeakAvx2 = {"avx2", kChains * 32, run};

}  // namespace kz
