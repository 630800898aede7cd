// The rate of vpmaddubsw, vpmaddwd and vpaddd together, which is what 8-bit products take without VNNI.
#ifndef __AVX2__
#error "compile this file with -mavx2"
#endif
#include <immintrin.h>

#include "cpu/template/peak_chains.h"

namespace kz {
namespace {

struct Vpmaddubsw {
  static constexpr int kChains = 10;
  using Sum = __m256i;
  static Sum step(Sum sum) {
    __m256i w = _mm256_set1_epi32(0x01020304);
    asm volatile("" : "+x"(w));  // w may have changed, as far as the compiler knows: no product is done once only
    const __m256i pairs = _mm256_maddubs_epi16(w, _mm256_set1_epi32(0x01ff01ff));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

}  // namespace

extern const PeakLoop kPeakAvx2;
constexpr PeakLoop kPeakAvx2 = peak_loop<Vpmaddubsw, 32>("avx2");

}  // namespace kz
