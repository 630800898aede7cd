// The rate of vpdpbusd on 32-byte vectors.
#ifndef __AVXVNNI__
#error "compile this file with -mavx2 -mavxvnni"
#endif
#include <immintrin.h>

#include "cpu/template/peak_chains.h"

namespace kz {
namespace {

struct Vpdpbusd32 {
  static constexpr int kChains = 14;
  using Sum = __m256i;
  static Sum step(Sum sum) {
    return _mm256_dpbusd_avx_epi32(sum, _mm256_set1_epi32(0x01020304), _mm256_set1_epi32(0x01ff01ff));
  }
};

}  // namespace

extern const PeakLoop kPeakAvxVnni;
constexpr PeakLoop kPeakAvxVnni = peak_loop<Vpdpbusd32, 32>("avxvnni");

}  // namespace kz
