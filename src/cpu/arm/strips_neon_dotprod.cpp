// Products on strips with NEON dot products: 4 columns in a vector, sdot with four broadcast activation codes.
#ifndef __ARM_FEATURE_DOTPROD
#error "compile this file with -march=armv8.2-a+dotprod"
#endif
#include <arm_neon.h>

#include "cpu/template/strip_product.h"
#include "cpu/template/strip_quantise.h"

namespace kz {
namespace {

struct NeonDotprod {
  using Bytes = uint8x16_t;
  using Ints = int32x4_t;
  using Floats = float32x4_t;
  static constexpr int kColumns = 4;
  static constexpr int kTileRows = 6;
  static constexpr int kTileGroups = 2;
  static constexpr int kSignedZero = 0;

  KZ_INLINE static Bytes bytes(const void* p) { return vld1q_u8(static_cast<const uint8_t*>(p)); }
  KZ_INLINE static Bytes splat4(const int8_t* p) {
    int32_t four;
    __builtin_memcpy(&four, p, 4);
    return vreinterpretq_u8_s32(vdupq_n_s32(four));
  }
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
  KZ_INLINE static Ints dot(Ints sum, Bytes w, Bytes x) { return dot_signed(sum, w, x); }
  KZ_INLINE static Ints dot_signed(Ints sum, Bytes w, Bytes x) {
    return vdotq_s32(sum, vreinterpretq_s8_u8(w), vreinterpretq_s8_u8(x));
  }
  KZ_INLINE static Floats floats(float x) { return vdupq_n_f32(x); }
  KZ_INLINE static Floats half(const void* p) {
    uint16x4_t bits;
    __builtin_memcpy(&bits, p, 8);
    return vcvt_f32_f16(vreinterpret_f16_u16(bits));
  }
  KZ_INLINE static uint16x8_t four_bytes(const uint8_t* p) {
    uint32_t four;
    __builtin_memcpy(&four, p, 4);
    return vmovl_u8(vcreate_u8(four));
  }
  KZ_INLINE static Floats int8(const uint8_t* p) {
    uint32_t four;
    __builtin_memcpy(&four, p, 4);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(four)))));
  }
  KZ_INLINE static Floats six(const uint8_t* low4, int low_shift, const uint8_t* high2, int high_shift) {
    const uint32x4_t low_byte = vmovl_u16(vget_low_u16(four_bytes(low4)));
    const uint32x4_t high_byte = vmovl_u16(vget_low_u16(four_bytes(high2)));
    const uint32x4_t lo = vandq_u32(vshlq_u32(low_byte, vdupq_n_s32(-low_shift)), vdupq_n_u32(15));
    const uint32x4_t hi = vandq_u32(vshlq_u32(high_byte, vdupq_n_s32(-high_shift)), vdupq_n_u32(3));
    return vcvtq_f32_u32(vorrq_u32(lo, vshlq_n_u32(hi, 4)));
  }
  KZ_INLINE static Floats convert(Ints v) { return vcvtq_f32_s32(v); }
  KZ_INLINE static Floats mul(Floats a, Floats b) { return vmulq_f32(a, b); }
  KZ_INLINE static Floats add(Floats a, Floats b) { return vaddq_f32(a, b); }
  KZ_INLINE static Floats fma(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
  KZ_INLINE static void store(float* p, Floats v) { vst1q_f32(p, v); }
};

}  // namespace

extern const StripKernels kStripsNeonDotprod;
constexpr StripKernels kStripsNeonDotprod = {"neon_dotprod", knows_strip_type, product_of_type<NeonDotprod>,
                                             quantise_strip_row};

}  // namespace kz
