// Products on strips with AVX-VNNI: AVX2 with the dot product instruction of the small cores.
#ifndef __AVXVNNI__
#error "compile this file with -mavx2 -mfma -mf16c -mavxvnni"
#endif
#include "cpu/x86/strips_avx2.h"

namespace kz {
namespace {

struct AvxVnni : Avx2 {
  static constexpr int kSignedZero = 128;
  /// All weights without a minimum go in as w + 128.
  static constexpr Unpacked unpacked(int zero, bool is_signed, bool has_min) {
    if (has_min) return {0, 0, true};
    return {is_signed ? 128 : 128 - zero, 128, true};
  }
  KZ_INLINE static Ints dot(Ints sum, Bytes w, Bytes x) { return _mm256_dpbusd_avx_epi32(sum, w, x); }
  KZ_INLINE static Ints dot_signed(Ints sum, Bytes w, Bytes x) {
    return dot(sum, _mm256_xor_si256(w, _mm256_set1_epi8(static_cast<char>(0x80))), x);
  }
};

}  // namespace

extern const StripKernels kStripsAvxVnni;
constexpr StripKernels kStripsAvxVnni = {"avxvnni", knows_strip_type, product_of_type<AvxVnni>, quantise_strip_row};

}  // namespace kz
