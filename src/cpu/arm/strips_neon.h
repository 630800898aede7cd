// Strips in vectors of four columns: loads, shifts and the float step. Shared by the tables of this folder.
//
// Codes of weights are at most 63 or signed, so that both kinds go into the signed dot products as they are.
#pragma once

#include <arm_neon.h>

#include "cpu/template/strip_product.h"
#include "cpu/template/strip_quantise.h"

namespace kz {
namespace {

/// Vectors of four columns; what both tables read and decode with.
struct Neon {
  using Bytes = uint8x16_t;
  using Ints = int32x4_t;
  using Floats = float32x4_t;
  static constexpr int kColumns = 4;
  static constexpr int kGroups = 32 / kColumns;

  KZ_INLINE static Bytes bytes(const void* p) { return vld1q_u8(static_cast<const uint8_t*>(p)); }
  KZ_INLINE static Bytes mask(Bytes v, int byte) { return vandq_u8(v, vdupq_n_u8(static_cast<uint8_t>(byte))); }
  KZ_INLINE static Bytes either(Bytes a, Bytes b) { return vorrq_u8(a, b); }
  template <int n>
  KZ_INLINE static Bytes up(Bytes v) {
    return vshlq_n_u8(v, n);
  }
  template <int n>
  KZ_INLINE static Bytes down(Bytes v) {
    return vshrq_n_u8(v, n);
  }
  KZ_INLINE static Bytes low(Bytes v) { return mask(v, 15); }
  KZ_INLINE static Bytes high(Bytes v) { return vshrq_n_u8(v, 4); }
  KZ_INLINE static Bytes table16(const int8_t* values, Bytes index) {
    return vreinterpretq_u8_s8(vqtbl1q_s8(vld1q_s8(values), index));
  }
  KZ_INLINE static Ints ints(int32_t x) { return vdupq_n_s32(x); }
  KZ_INLINE static Floats floats(float x) { return vdupq_n_f32(x); }
  KZ_INLINE static Floats half(const void* p) {
    uint16x4_t bits;
    __builtin_memcpy(&bits, p, 8);
    return vcvt_f32_f16(vreinterpret_f16_u16(bits));
  }
  KZ_INLINE static Floats int8(const uint8_t* p) {
    uint32_t four;
    __builtin_memcpy(&four, p, 4);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(four)))));
  }
  struct Six {
    Floats of[4];
  };
  /// Six-bit values of sub-block j of sixteen columns: four low bits and two high bits from their planes.
  KZ_INLINE static Six six16(const uint8_t* low4, const uint8_t* high2, int j) {
    const int8x16_t low_shift = vdupq_n_s8(j < 4 ? 0 : -4), high_shift = vdupq_n_s8(static_cast<int8_t>(-2 * (j & 3)));
    const Bytes lo = mask(vshlq_u8(bytes(low4), low_shift), 15);
    const Bytes hi = mask(vshlq_u8(bytes(high2), high_shift), 3);
    const Bytes six = either(lo, vshlq_n_u8(hi, 4));
    const uint16x8_t first = vmovl_u8(vget_low_u8(six)), second = vmovl_u8(vget_high_u8(six));
    return {{vcvtq_f32_u32(vmovl_u16(vget_low_u16(first))), vcvtq_f32_u32(vmovl_u16(vget_high_u16(first))),
             vcvtq_f32_u32(vmovl_u16(vget_low_u16(second))), vcvtq_f32_u32(vmovl_u16(vget_high_u16(second)))}};
  }
  KZ_INLINE static Floats convert(Ints v) { return vcvtq_f32_s32(v); }
  KZ_INLINE static Floats mul(Floats a, Floats b) { return vmulq_f32(a, b); }
  KZ_INLINE static Floats add(Floats a, Floats b) { return vaddq_f32(a, b); }
  KZ_INLINE static Floats fma(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
  KZ_INLINE static void store(float* p, Floats v) { vst1q_f32(p, v); }
};

/// body(Constant<first>), ..., body(Constant<last - 1>): lane numbers need constants.
template <int first, int last, class Body>
KZ_INLINE void for_constants(Body&& body) {
  if constexpr (first < last) {
    body(Constant<first>{});
    for_constants<first + 1, last>(body);
  }
}

}  // namespace
}  // namespace kz
