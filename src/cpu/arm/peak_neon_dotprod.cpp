// The rate of sdot.
#ifndef __ARM_FEATURE_DOTPROD
#error "compile this file with -march=armv8.2-a+dotprod"
#endif
#include <arm_neon.h>

#include "cpu/peak_loop.h"

namespace kz {
namespace {

constexpr int kChains = 20;  // latency 3 to 4, up to four a cycle

int32_t run(int64_t n_rounds) {
  const int8x16_t w = vdupq_n_s8(3), x = vdupq_n_s8(-5);
  int32x4_t sums[kChains];
  for (int32x4_t& sum : sums) sum = vdupq_n_s32(0);
  for (int64_t round = 0; round < n_rounds; ++round) {
#pragma GCC unroll 20
    for (int i = 0; i < kChains; ++i) sums[i] = vdotq_s32(sums[i], w, x);
  }
  int32x4_t all = sums[0];
  for (int i = 1; i < kChains; ++i) all = veorq_s32(all, sums[i]);
  return vgetq_lane_s32(all, 0) + vgetq_lane_s32(all, 3);
}

}  // namespace

extern const PeakLoop kPeakNeonDotprod;
constexpr PeakLoop kPeakNeonDotprod = {"neon_dotprod", kChains * 16, run};

}  // namespace kz
