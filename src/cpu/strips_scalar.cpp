// Products on strips in plain code: one column at a time, four codes in a word. Slow, runs everywhere; a fused
// multiply-add is a library call where the machine has none.
#include "core/half.h"
#include "cpu/template/strip_product.h"
#include "cpu/template/strip_quantise.h"

namespace kz {
namespace {

struct Scalar {
  using Bytes = uint32_t;
  using Ints = int32_t;
  using Floats = float;
  static constexpr int kColumns = 1;
  static constexpr int kFewRows = 2;
  static constexpr int kFewSums = 1;
  static constexpr int kFewStrips = 1;
  static constexpr int kBatchRows = 0;
  static constexpr int kSignedZero = 0;

  KZ_INLINE static Bytes bytes(const void* p) {
    uint32_t four;
    __builtin_memcpy(&four, p, 4);
    return four;
  }
  KZ_INLINE static Bytes splat4(const int8_t* p) { return bytes(p); }
  KZ_INLINE static Bytes mask(Bytes v, int byte) { return v & (0x01010101u * static_cast<uint32_t>(byte)); }
  KZ_INLINE static Bytes either(Bytes a, Bytes b) { return a | b; }
  template <int n>
  KZ_INLINE static Bytes up(Bytes v) {
    return v << n;
  }
  template <int n>
  KZ_INLINE static Bytes down(Bytes v) {
    return v >> n;
  }
  KZ_INLINE static Bytes low(Bytes v) { return mask(v, 15); }
  KZ_INLINE static Bytes high(Bytes v) { return mask(v >> 4, 15); }
  KZ_INLINE static Bytes table16(const int8_t* values, Bytes index) {
    uint32_t out = 0;
    for (int i = 0; i < 4; ++i) {
      out |= static_cast<uint32_t>(static_cast<uint8_t>(values[(index >> (8 * i)) & 15u])) << (8 * i);
    }
    return out;
  }
  KZ_INLINE static Ints ints(int32_t x) { return x; }
  KZ_INLINE static int32_t signed_byte(Bytes v, int i) {
    return static_cast<int8_t>(static_cast<uint8_t>(v >> (8 * i)));
  }
  KZ_INLINE static Ints dot(Ints sum, Bytes w, Bytes x) { return dot_signed(sum, w, x); }
  KZ_INLINE static Ints dot_signed(Ints sum, Bytes w, Bytes x) {
    for (int i = 0; i < 4; ++i) sum += signed_byte(w, i) * signed_byte(x, i);
    return sum;
  }
  KZ_INLINE static Floats floats(float x) { return x; }
  KZ_INLINE static Floats half(const void* p) {
    uint16_t h;
    __builtin_memcpy(&h, p, 2);
    return f16_to_f32(h);
  }
  KZ_INLINE static Floats int8(const uint8_t* p) { return static_cast<float>(static_cast<int8_t>(*p)); }
  KZ_INLINE static Floats six(const uint8_t* low4, int low_shift, const uint8_t* high2, int high_shift) {
    return static_cast<float>(((*low4 >> low_shift) & 15) | ((*high2 >> high_shift) & 3) << 4);
  }
  KZ_INLINE static Floats convert(Ints v) { return static_cast<float>(v); }
  KZ_INLINE static Floats mul(Floats a, Floats b) { return a * b; }
  KZ_INLINE static Floats add(Floats a, Floats b) { return a + b; }
  KZ_INLINE static Floats fma(Floats a, Floats b, Floats c) { return __builtin_fmaf(a, b, c); }
  KZ_INLINE static void store(float* p, Floats v) { *p = v; }
};

}  // namespace

extern const StripKernels kStripsScalar;
constexpr StripKernels kStripsScalar = {"scalar", knows_strip_type, product_of_type<Scalar>, quantise_strip_row};

}  // namespace kz
