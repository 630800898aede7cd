// The rate of vpdpbusd on 64-byte vectors.
#ifndef __AVX512VNNI__
#error "compile this file with -mavx512f -mavx512vnni"
#endif
#include <immintrin.h>

#include "cpu/template/peak_chains.h"

namespace kz {
namespace {

struct Vpdpbusd64 {
  static constexpr int kChains = 14;  // latency 5, two a cycle, and some more to be safe
  using Sum = __m512i;
  static Sum step(Sum sum) {
    return _mm512_dpbusd_epi32(sum, _mm512_set1_epi32(0x01020304), _mm512_set1_epi32(0x01ff01ff));
  }
};

}  // namespace

extern const PeakLoop kPeakAvx512Vnni;
constexpr PeakLoop kPeakAvx512Vnni = peak_loop<Vpdpbusd64, 64>("avx512vnni");

}  // namespace kz
