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
  static constexpr int kStoredQueries = 2;
  static constexpr int kStoredKeys = 2;
  static constexpr int kStoredBlocks = 1;

  KZ_INLINE static Native<float, kWidth>::Type halves(const void* p) {
    __m128i eight;
    __builtin_memcpy(&eight, p, sizeof eight);
    return _mm256_cvtph_ps(eight);
  }
  KZ_INLINE static Lanes<kWidth>::F half_everywhere(const std::byte* p) {
    const __m256 x = _mm256_cvtph_ps(_mm_set1_epi16(static_cast<int16_t>(load_u16(p))));
    return {x, x};
  }
  KZ_INLINE static Lanes<kWidth>::F codes(const std::byte* p) { return {eight_codes(p), eight_codes(p + 8)}; }

 private:
  KZ_INLINE static __m256 eight_codes(const std::byte* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
};

}  // namespace

extern const Kernels kKernelsAvx2;
constexpr Kernels kKernelsAvx2 = make_kernels<Shape>("avx2");

}  // namespace kz
