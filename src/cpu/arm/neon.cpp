// Kernel table neon: 32 registers of 4 floats (ARMv8 with Advanced SIMD), without fused multiply-add.
#include <arm_neon.h>

#include "cpu/kernel_template.h"

namespace kz {
namespace {

struct Shape {
  static constexpr int kWidth = 4;
  static constexpr int kTileWeights = 3;
  static constexpr int kTileRows = 2;
  static constexpr int kSumRows = 3;
  static constexpr int kSumVectors = 2;
  static constexpr int kDeltaRows = 2;

  KZ_INLINE static Native<float, kWidth>::Type halves(const void* p) {
    uint16x4_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return vcvt_f32_f16(vreinterpret_f16_u16(four));
  }
};

}  // namespace

extern const Kernels kKernelsNeon;
constexpr Kernels kKernelsNeon = make_kernels<Shape>("neon");

}  // namespace kz
