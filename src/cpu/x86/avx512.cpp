// Kernel table avx512: 32 registers of 16 floats. Compiled with AVX-512 F, BW, DQ and VL, without fused multiply-add.
#include <immintrin.h>

#include "cpu/kernel_template.h"

namespace kz {
namespace {

struct Shape {
  static constexpr int kWidth = 16;
  static constexpr int kTileWeights = 4;
  static constexpr int kTileRows = 4;
  static constexpr int kSumRows = 4;
  static constexpr int kSumVectors = 4;
  static constexpr int kDeltaRows = 8;

  KZ_INLINE static Native<float, kWidth>::Type halves(const void* p) {
    __m256i sixteen;
    __builtin_memcpy(&sixteen, p, sizeof sixteen);
    return _mm512_maskz_cvtph_ps(0xffff, sixteen);  // unmasked, g++ 12 warns of a register in its own header
  }
};

}  // namespace

extern const Kernels kKernelsAvx512;
constexpr Kernels kKernelsAvx512 = make_kernels<Shape>("avx512");

}  // namespace kz
