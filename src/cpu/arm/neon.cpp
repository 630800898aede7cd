// Kernel table neon: 32 registers of 4 floats (ARMv8 with Advanced SIMD), without fused multiply-add.
#include "cpu/kernel_template.h"

namespace kz {
namespace {

struct Shape {
  static constexpr int kWidth = 4;
  static constexpr int kTileWeights = 3;
  static constexpr int kTileRows = 2;
  static constexpr int kSumRows = 3;
  static constexpr int kSumVectors = 2;
};

}  // namespace

extern const Kernels kKernelsNeon;
constexpr Kernels kKernelsNeon = make_kernels<Shape>("neon");

}  // namespace kz
