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
  static constexpr int kFewStrips = 2;
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

/// quantise_block() with vectors, step by step the same operations.
inline void quantise_block_avx512(const float* x, int64_t at, const Q8Rows& to) {
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff), one = _mm512_set1_epi32(0x4b400000);
  const __m512i most = _mm512_set1_epi32(127), least = _mm512_set1_epi32(-127);
  const __m512 x0 = _mm512_loadu_ps(x), x1 = _mm512_loadu_ps(x + 16);
  const int32_t largest_bits = _mm512_reduce_max_epi32(_mm512_max_epi32(
      _mm512_and_si512(_mm512_castps_si512(x0), magnitude), _mm512_and_si512(_mm512_castps_si512(x1), magnitude)));
  float largest;
  __builtin_memcpy(&largest, &largest_bits, 4);
  const float d = largest / 127.0f;
  const __m512 inverse = _mm512_set1_ps(d > 0.0f ? 1.0f / d : 0.0f);
  const __m512 round = _mm512_set1_ps(12582912.0f);
  const auto codes = [&](__m512 v) {
    const __m512i bits = _mm512_castps_si512(_mm512_add_ps(_mm512_mul_ps(v, inverse), round));
    return _mm512_cvtepi32_epi8(_mm512_max_epi32(_mm512_min_epi32(_mm512_sub_epi32(bits, one), most), least));
  };
  const __m256i natural = _mm256_set_m128i(codes(x1), codes(x0));
  const __m256i swapped = _mm256_shuffle_epi8(
      natural, _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.codes + 32 * at), swapped);
  // Sums of unsigned bytes: 128 is added to each of sixteen codes before and taken off after.
  const __m256i eights =
      _mm256_sad_epu8(_mm256_xor_si256(natural, _mm256_set1_epi8(static_cast<char>(0x80))), _mm256_setzero_si256());
  int64_t parts[4];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts), eights);
  store_block_facts(to, at, d, static_cast<int32_t>(parts[0] + parts[1]) - 16 * 128,
                    static_cast<int32_t>(parts[2] + parts[3]) - 16 * 128);
}

inline void quantise_strip_row_avx512(const float* x, int64_t r, const Q8Rows& to) {
  for (int64_t b = 0; b < to.n_blocks; ++b) quantise_block_avx512(x + 32 * b, b * to.n_rows + r, to);
}

}  // namespace
}  // namespace kz
