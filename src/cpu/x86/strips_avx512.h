// Products on strips with 512-bit vectors: 16 columns in a vector, vpdpbusd with four broadcast activation codes.
// Included by strips_avx512vnni.cpp and strips_amx_int8.cpp.
#pragma once

#include <immintrin.h>

#include "cpu/template/strip_product.h"
#include "cpu/template/strip_quantise.h"

namespace kz {
namespace {

struct Avx512Vnni {
  using Bytes = __m512i;
  using Ints = __m512i;
  using Floats = __m512;
  static constexpr int kColumns = 16;
  static constexpr int kFewRows = 8;
  static constexpr int kFewSums = 8;
  static constexpr int kBatchRows = 6;
  static constexpr int kBatchGroups = 2;
  static constexpr int kChunkTiles = 16;
  static constexpr int kSignedZero = 128;

  /// All weights without a minimum go in as w + 128.
  static constexpr Unpacked unpacked(int zero, bool is_signed, bool has_min) {
    if (has_min) return {0, 0, true};
    return {is_signed ? 128 : 128 - zero, 128, true};
  }

  KZ_INLINE static Bytes bytes(const void* p) { return _mm512_loadu_si512(p); }
  KZ_INLINE static void store_bytes(void* p, Bytes v) { _mm512_storeu_si512(p, v); }
  template <int n>
  KZ_INLINE static Bytes add_bytes(Bytes v) {
    return n == 0 ? v : _mm512_add_epi8(v, _mm512_set1_epi8(static_cast<char>(n)));
  }
  KZ_INLINE static Bytes splat4(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, 4);
    return _mm512_set1_epi32(four);
  }
  KZ_INLINE static Bytes mask(Bytes v, int byte) {
    return _mm512_and_si512(v, _mm512_set1_epi8(static_cast<char>(byte)));
  }
  KZ_INLINE static Bytes either(Bytes a, Bytes b) { return _mm512_or_si512(a, b); }
  template <int n>
  KZ_INLINE static Bytes up(Bytes v) {
    return _mm512_slli_epi16(v, n);
  }
  template <int n>
  KZ_INLINE static Bytes down(Bytes v) {
    return _mm512_srli_epi16(v, n);
  }
  KZ_INLINE static Bytes low(Bytes v) { return mask(v, 15); }
  KZ_INLINE static Bytes high(Bytes v) { return mask(down<4>(v), 15); }
  KZ_INLINE static Bytes table16(const int8_t* values, Bytes index) {
    const __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
    return _mm512_shuffle_epi8(table, index);
  }
  KZ_INLINE static Ints ints(int32_t x) { return _mm512_set1_epi32(x); }
  KZ_INLINE static Ints dot(Ints sum, Bytes w, Bytes x) { return _mm512_dpbusd_epi32(sum, w, x); }
  KZ_INLINE static Ints dot_signed(Ints sum, Bytes w, Bytes x) {
    return _mm512_dpbusd_epi32(sum, _mm512_xor_si512(w, _mm512_set1_epi8(static_cast<char>(0x80))), x);
  }
  KZ_INLINE static Floats floats(float x) { return _mm512_set1_ps(x); }
  KZ_INLINE static Floats half(const void* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  KZ_INLINE static Floats int8(const uint8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  KZ_INLINE static Floats six(const uint8_t* low4, int low_shift, const uint8_t* high2, int high_shift) {
    const __m512i low_byte = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low4)));
    const __m512i high_byte = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(high2)));
    const __m512i lo =
        _mm512_and_si512(_mm512_srl_epi32(low_byte, _mm_cvtsi32_si128(low_shift)), _mm512_set1_epi32(15));
    const __m512i hi =
        _mm512_and_si512(_mm512_srl_epi32(high_byte, _mm_cvtsi32_si128(high_shift)), _mm512_set1_epi32(3));
    return _mm512_cvtepi32_ps(_mm512_or_si512(lo, _mm512_slli_epi32(hi, 4)));
  }
  KZ_INLINE static Floats convert(Ints v) { return _mm512_cvtepi32_ps(v); }
  KZ_INLINE static Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  KZ_INLINE static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
  KZ_INLINE static Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  KZ_INLINE static Floats load(const float* p) { return _mm512_loadu_ps(p); }
  KZ_INLINE static void store(float* p, Floats v) { _mm512_storeu_ps(p, v); }
};

}  // namespace
}  // namespace kz
