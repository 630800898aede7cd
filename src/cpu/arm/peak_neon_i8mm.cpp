// The rate of smmla.
#ifndef __ARM_FEATURE_MATMUL_INT8
#error "compile this file with -march=armv8.2-a+i8mm"
#endif
#include <arm_neon.h>

#include "cpu/template/peak_chains.h"

namespace kz {
namespace {

struct Smmla {
  static constexpr int kChains = 20;  // latency 3 to 4, up to four a cycle
  using Sum = int32x4_t;
  static Sum step(Sum sum) { return vmmlaq_s32(sum, vdupq_n_s8(3), vdupq_n_s8(-5)); }
};

}  // namespace

extern const PeakLoop kPeakNeonI8mm;
constexpr PeakLoop kPeakNeonI8mm = peak_loop<Smmla, 32>("neon_i8mm");

}  // namespace kz
