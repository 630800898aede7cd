// Products on strips with sdot: four inputs of four columns in an instruction.
#ifndef __ARM_FEATURE_DOTPROD
#error "compile this file with -march=armv8.2-a+dotprod"
#endif
#include "cpu/arm/strip_panel.h"

namespace kz {
namespace {

struct Dotprod {
  static constexpr int kTogether = 1;

  template <int n>
  struct Sums {
    int32x4_t of[n][2];
  };

  template <int n>
  KZ_INLINE static void prepare(const int8_t* const (&rows)[n], int8_t* to) {
    for (int r = 0; r < n; ++r) __builtin_memcpy(to + 32 * r, rows[r], 32);
  }
  KZ_INLINE static void put(int8_t* to, int c, int g, int8x16_t lo, int8x16_t hi) {
    int8_t* line = to + 256 * (g / 2) + 64 * c + 32 * (g % 2);
    vst1q_s8(line, lo);
    vst1q_s8(line + 16, hi);
  }
  /// Sixteen codes of a row serve two lines: lane 2 (c mod 2) the low, the next lane the high half of line c.
  template <int kFirst, int kLast, int n>
  KZ_INLINE static void add(Sums<n>& sums, const int8_t* w, const int8_t* x) {
    for_constants<kFirst, kLast>([&](auto constant) {
      constexpr int c = decltype(constant)::value;
      int8x16_t weights[4];
      for (int i = 0; i < 4; ++i) weights[i] = vld1q_s8(w + 64 * c + 16 * i);
      for (int r = 0; r < n; ++r) {
        const int8x16_t codes = vld1q_s8(x + 32 * r + 16 * (c / 2));
        for (int g = 0; g < 2; ++g) {
          sums.of[r][g] = vdotq_laneq_s32(sums.of[r][g], weights[2 * g], codes, 2 * (c % 2));
          sums.of[r][g] = vdotq_laneq_s32(sums.of[r][g], weights[2 * g + 1], codes, 2 * (c % 2) + 1);
        }
      }
    });
  }
  KZ_INLINE static float32x4_t columns(const float* p) { return vld1q_f32(p); }
  KZ_INLINE static void spread(int32x2_t two, int r, int32_t* to) { vst1_s32(to + r, two); }
  KZ_INLINE static void spread(float32x2_t two, int r, float* to) { vst1_f32(to + r, two); }
  KZ_INLINE static int32x4_t rows(const int32_t* from, int i) { return vld1q_dup_s32(from + i); }
  KZ_INLINE static float32x4_t rows(const float* from, int i) { return vld1q_dup_f32(from + i); }
  KZ_INLINE static void swap(float32x4_t&, float32x4_t&) {}
};

}  // namespace

extern const StripKernels kStripsNeonDotprod;
constexpr StripKernels kStripsNeonDotprod = {"neon_dotprod", knows_strip_type, neon_product<Dotprod>,
                                             quantise_strip_row};

}  // namespace kz
