// Kernel table avx2: 16 registers of 8 floats. Compiled with AVX2, without fused multiply-add.
#include <immintrin.h>

#include "cpu/kernel_template.h"

namespace kz {
namespace {

struct Shape {
  static constexpr int kWidth = 8;
  static constexpr int kTileWeights = 3;
  static constexpr int kTileRows = 2;
  static constexpr int kSumRows = 3;
  static constexpr int kSumVectors = 2;
  static constexpr int kDeltaRows = 2;

  KZ_INLINE static Native<float, kWidth>::Type halves(const void* p) {
    __m128i eight;
    __builtin_memcpy(&eight, p, sizeof eight);
    return _mm256_cvtph_ps(eight);
  }
};

}  // namespace

extern const Kernels kKernelsAvx2;
constexpr Kernels kKernelsAvx2 = make_kernels<Shape>("avx2");

}  // namespace kz
