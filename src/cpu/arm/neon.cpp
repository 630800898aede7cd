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
  static constexpr int kStoredQueries = 2;
  static constexpr int kStoredKeys = 2;
  static constexpr int kStoredBlocks = 1;

  KZ_INLINE static Native<float, kWidth>::Type halves(const void* p) {
    uint16x4_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return vcvt_f32_f16(vreinterpret_f16_u16(four));
  }
  KZ_INLINE static Lanes<kWidth>::F half_everywhere(const std::byte* p) {
    const float32x4_t x = vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(static_cast<uint16_t>(load_u16(p)))));
    return {{x, x}, {x, x}};
  }
  KZ_INLINE static Lanes<kWidth>::F codes(const std::byte* p) {
    const int8x16_t bytes = vld1q_s8(reinterpret_cast<const int8_t*>(p));
    const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_s8(vget_high_s8(bytes));
    return {{four_codes(vget_low_s16(low)), four_codes(vget_high_s16(low))},
            {four_codes(vget_low_s16(high)), four_codes(vget_high_s16(high))}};
  }

 private:
  KZ_INLINE static float32x4_t four_codes(int16x4_t x) { return vcvtq_f32_s32(vmovl_s16(x)); }
};

}  // namespace

extern const Kernels kKernelsNeon;
constexpr Kernels kKernelsNeon = make_kernels<Shape>("neon");

}  // namespace kz
