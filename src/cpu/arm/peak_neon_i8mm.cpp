// The rate of smmla.
#ifndef __ARM_FEATURE_MATMUL_INT8
#error "compile this file with -march=armv8.2-a+i8mm"
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
    for (int i = 0; i < kChains; ++i) sums[i] = vmmlaq_s32(sums[i], w, x);
  }
  int32x4_t all = sums[0];
  for (int i = 1; i < kChains; ++i) all = veorq_s32(all, sums[i]);
  return vgetq_lane_s32(all, 0) + vgetq_lane_s32(all, 3);
}

}  // namespace

extern const PeakLoop kPeakNeonI8mm;
constexpr PeakLoop kPeakNeonI8mm = {"neon_i8mm", kChains * 32, run};

}  // namespace kz
