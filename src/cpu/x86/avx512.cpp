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
  static constexpr int kStoredQueries = 4;
  static constexpr int kStoredKeys = 4;
  static constexpr int kStoredBlocks = 2;

  KZ_INLINE static Native<float, kWidth>::Type halves(const void* p) {
    __m256i sixteen;
    __builtin_memcpy(&sixteen, p, sizeof sixteen);
    return _mm512_maskz_cvtph_ps(0xffff, sixteen);  // unmasked, g++ 12 warns of a register in its own header
  }
  KZ_INLINE static Lanes<kWidth>::F half_everywhere(const std::byte* p) {
    return _mm512_maskz_cvtph_ps(0xffff, _mm256_set1_epi16(static_cast<int16_t>(load_u16(p))));
  }
  KZ_INLINE static Lanes<kWidth>::F codes(const std::byte* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm512_maskz_cvtepi32_ps(0xffff, _mm512_maskz_cvtepi8_epi32(0xffff, bytes));
  }
};

}  // namespace

extern const Kernels kKernelsAvx512;
constexpr Kernels kKernelsAvx512 = make_kernels<Shape>("avx512");

}  // namespace kz
