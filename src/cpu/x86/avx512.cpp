// Kernel table avx512: 32 registers of 16 floats. Compiled with AVX-512 F, BW, DQ and VL, without fused multiply-add.
#include "cpu/kernel_template.h"

namespace kz {
namespace {

struct Shape {
  static constexpr int kWidth = 16;
  static constexpr int kTileWeights = 4;
  static constexpr int kTileRows = 4;
  static constexpr int kSumRows = 4;
  static constexpr int kSumVectors = 4;
};

}  // namespace

extern const Kernels kKernelsAvx512;
constexpr Kernels kKernelsAvx512 = make_kernels<Shape>("avx512");

}  // namespace kz
