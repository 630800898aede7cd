// Products on strips with smmla: two rows x two columns x eight inputs in an instruction; one row goes through sdot.
#ifndef __ARM_FEATURE_MATMUL_INT8
#error "compile this file with -march=armv8.2-a+dotprod+i8mm"
#endif
#include "cpu/arm/strip_panel.h"

namespace kz {
namespace {

struct Int8Matrix {
  static constexpr int kTogether = 2;

  /// Sums of a pair of rows with a pair of columns: {row 0 column 0, row 0 column 1, row 1 column 0, row 1 column 1}.
  template <int n>
  struct Sums {
    int32x4_t of[n / 2][4];
  };

  /// Per line, eight inputs of one row beside those of the next.
  template <int n>
  KZ_INLINE static void prepare(const int8_t* const (&rows)[n], int8_t* to) {
    for (int r = 0; r < n; r += 2) {
      for (int half = 0; half < 2; ++half) {
        const int64x2_t a = vreinterpretq_s64_s8(vld1q_s8(rows[r] + 16 * half));
        const int64x2_t b = vreinterpretq_s64_s8(vld1q_s8(rows[r + 1] + 16 * half));
        vst1q_s8(to + place(2 * half, r), vreinterpretq_s8_s64(vzip1q_s64(a, b)));
        vst1q_s8(to + place(2 * half + 1, r), vreinterpretq_s8_s64(vzip2q_s64(a, b)));
      }
    }
  }
  /// smmla wants eight inputs of a column side by side; a line keeps four of them in the low and four in the high
  /// nibbles of the same bytes.
  KZ_INLINE static void put(int8_t* to, int c, int g, int8x16_t lo, int8x16_t hi) {
    int8_t* line = to + 256 * (g / 2) + 64 * c + 32 * (g % 2);
    const int32x4_t a = vreinterpretq_s32_s8(lo), b = vreinterpretq_s32_s8(hi);
    vst1q_s8(line, vreinterpretq_s8_s32(vzip1q_s32(a, b)));
    vst1q_s8(line + 16, vreinterpretq_s8_s32(vzip2q_s32(a, b)));
  }
  template <int kFirst, int kLast, int n>
  KZ_INLINE static void add(Sums<n>& sums, const int8_t* w, const int8_t* x) {
    for (int c = kFirst; c < kLast; ++c) {
      int8x16_t weights[4];
      for (int i = 0; i < 4; ++i) weights[i] = vld1q_s8(w + 64 * c + 16 * i);
      for (int r = 0; r < n; r += 2) {
        const int8x16_t codes = vld1q_s8(x + place(c, r));
        for (int i = 0; i < 4; ++i) sums.of[r / 2][i] = vmmlaq_s32(sums.of[r / 2][i], codes, weights[i]);
      }
    }
  }
  KZ_INLINE static float32x4_t columns(const float* p) {
    const float32x2_t two = vld1_f32(p);
    return vcombine_f32(two, two);
  }
  KZ_INLINE static void spread(int32x2_t two, int r, int32_t* to) {
    vst1q_s32(to + 2 * r, vcombine_s32(vdup_lane_s32(two, 0), vdup_lane_s32(two, 1)));
  }
  KZ_INLINE static void spread(float32x2_t two, int r, float* to) {
    vst1q_f32(to + 2 * r, vcombine_f32(vdup_lane_f32(two, 0), vdup_lane_f32(two, 1)));
  }
  KZ_INLINE static int32x4_t rows(const int32_t* from, int i) { return vld1q_s32(from + 4 * i); }
  KZ_INLINE static float32x4_t rows(const float* from, int i) { return vld1q_f32(from + 4 * i); }
  KZ_INLINE static void swap(float32x4_t& a, float32x4_t& b) {
    const float64x2_t x = vreinterpretq_f64_f32(a), y = vreinterpretq_f64_f32(b);
    a = vreinterpretq_f32_f64(vzip1q_f64(x, y));
    b = vreinterpretq_f32_f64(vzip2q_f64(x, y));
  }

 private:
  /// Where the codes of line c of rows r, r + 1 lie.
  KZ_INLINE static int place(int c, int r) { return 16 * (kPanelRows / 2 * c + r / 2); }
};

}  // namespace

extern const StripKernels kStripsNeonI8mm;
constexpr StripKernels kStripsNeonI8mm = {"neon_i8mm", knows_strip_type, neon_product<Int8Matrix>, quantise_strip_row};

}  // namespace kz
