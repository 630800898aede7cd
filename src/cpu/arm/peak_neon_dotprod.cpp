// The rate of sdot.
#ifndef __ARM_FEATURE_DOTPROD
#error "compile this file with -march=armv8.2-a+dotprod"
#endif
#include <arm_neon.h>

#include "cpu/template/peak_chains.h"

namespace kz {
namespace {

struct Sdot {
  static constexpr int kChains = 20;  // latency 3 to 4, up to four a cycle
  using Sum = int32x4_t;
  static Sum step(Sum sum) { return vdotq_s32(sum, vdupq_n_s8(3), vdupq_n_s8(-5)); }
};

}  // namespace

extern const PeakLoop kPeakNeonDotprod;
constexpr PeakLoop kPeakNeonDotprod = peak_loop<Sdot, 16>("neon_dotprod");

}  // namespace kz
