// Products on strips with 256-bit vectors: 8 columns in a vector. Included by strips_avx2.cpp and strips_avxvnni.cpp,
// which differ in one instruction.
#pragma once

#include <immintrin.h>

#include "cpu/template/strip_product.h"
#include "cpu/template/strip_quantise.h"

namespace kz {
namespace {

struct Avx2 {
  using Bytes = __m256i;
  using Ints = __m256i;
  using Floats = __m256;
  static constexpr int kColumns = 8;
  static constexpr int kFewRows = 4;
  static constexpr int kFewSums = 4;
  static constexpr int kFewStrips = 1;  // two are not measured
  static constexpr int kBatchRows = 4;
  static constexpr int kBatchGroups = 1;
  static constexpr int kChunkTiles = 8;
  static constexpr int kSignedZero = 0;

  /// As they lie in a strip: unsigned codes are small enough for vpmaddubsw, signed ones are turned there.
  static constexpr Unpacked unpacked(int zero, bool is_signed, bool) { return {0, is_signed ? 0 : zero, !is_signed}; }

  KZ_INLINE static Bytes bytes(const void* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  KZ_INLINE static void store_bytes(void* p, Bytes v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  template <int n>
  KZ_INLINE static Bytes add_bytes(Bytes v) {
    return n == 0 ? v : _mm256_add_epi8(v, _mm256_set1_epi8(static_cast<char>(n)));
  }
  KZ_INLINE static Bytes splat4(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, 4);
    return _mm256_set1_epi32(four);
  }
  KZ_INLINE static Bytes mask(Bytes v, int byte) {
    return _mm256_and_si256(v, _mm256_set1_epi8(static_cast<char>(byte)));
  }
  KZ_INLINE static Bytes either(Bytes a, Bytes b) { return _mm256_or_si256(a, b); }
  template <int n>
  KZ_INLINE static Bytes up(Bytes v) {
    return _mm256_slli_epi16(v, n);
  }
  template <int n>
  KZ_INLINE static Bytes down(Bytes v) {
    return _mm256_srli_epi16(v, n);
  }
  KZ_INLINE static Bytes low(Bytes v) { return mask(v, 15); }
  KZ_INLINE static Bytes high(Bytes v) { return mask(down<4>(v), 15); }
  KZ_INLINE static Bytes table16(const int8_t* values, Bytes index) {
    const __m256i table = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
    return _mm256_shuffle_epi8(table, index);
  }
  KZ_INLINE static Ints ints(int32_t x) { return _mm256_set1_epi32(x); }
  // vpmaddubsw saturates its sums of two products at 32767. Unsigned codes are at most 63: 2 * 63 * 127 fits. Signed
  // codes go in as |w| <= 128 times sign(w) x: 2 * 128 * 127 fits too.
  KZ_INLINE static Ints dot(Ints sum, Bytes w, Bytes x) {
    const __m256i pairs = _mm256_maddubs_epi16(w, x);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  KZ_INLINE static Ints dot_signed(Ints sum, Bytes w, Bytes x) {
    return dot(sum, _mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
  }
  KZ_INLINE static Floats floats(float x) { return _mm256_set1_ps(x); }
  KZ_INLINE static Floats half(const void* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  KZ_INLINE static __m128i eight_bytes(const uint8_t* p) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  }
  KZ_INLINE static Floats int8(const uint8_t* p) { return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight_bytes(p))); }
  KZ_INLINE static Floats six(const uint8_t* low4, int low_shift, const uint8_t* high2, int high_shift) {
    const __m256i low_byte = _mm256_cvtepu8_epi32(eight_bytes(low4));
    const __m256i high_byte = _mm256_cvtepu8_epi32(eight_bytes(high2));
    const __m256i lo =
        _mm256_and_si256(_mm256_srl_epi32(low_byte, _mm_cvtsi32_si128(low_shift)), _mm256_set1_epi32(15));
    const __m256i hi =
        _mm256_and_si256(_mm256_srl_epi32(high_byte, _mm_cvtsi32_si128(high_shift)), _mm256_set1_epi32(3));
    return _mm256_cvtepi32_ps(_mm256_or_si256(lo, _mm256_slli_epi32(hi, 4)));
  }
  KZ_INLINE static Floats convert(Ints v) { return _mm256_cvtepi32_ps(v); }
  KZ_INLINE static Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  KZ_INLINE static Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
  KZ_INLINE static Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  KZ_INLINE static Floats load(const float* p) { return _mm256_loadu_ps(p); }
  KZ_INLINE static void store(float* p, Floats v) { _mm256_storeu_ps(p, v); }
};

}  // namespace
}  // namespace kz
