// The types with 256 elements per block. The same style of loops as in dequantise.cpp.
#include "core/blocks/codebook.h"
#include "core/blocks/dequantise.h"
#include "core/blocks/layout.h"

namespace kz::blocks {
namespace {

/// The signed 6-bit scale of group k (0..15) in the 12 packed bytes of Q3_K.
inline int q3_k_scale(const uint8_t* scales, int k) {
  const int low = k < 8 ? scales[k] & 15 : scales[k - 8] >> 4;
  const int high = (scales[8 + (k & 3)] >> (2 * (k >> 2))) & 3;
  return (low | high << 4) - 32;
}

}  // namespace

void dequantise_q2_k(const uint8_t* __restrict in, float* __restrict out, int64_t n) {
  for (; n > 0; n -= kSuper, in += 84, out += kSuper) {
    const float d = load_f16(in + 80);
    const float dmin = load_f16(in + 82);
    for (int group = 0; group < 16; ++group) {  // 16 elements that share a scale
      const int half = group / 8;
      const int shift = 2 * (group % 8 / 2);
      const uint8_t* qs = in + 16 + 32 * half + 16 * (group % 2);
      const float scale = d * static_cast<float>(in[group] & 15);
      const float min = dmin * static_cast<float>(in[group] >> 4);
      float* __restrict y = out + 16 * group;
      for (int l = 0; l < 16; ++l) y[l] = scale * static_cast<float>((qs[l] >> shift) & 3) - min;
    }
  }
}

void dequantise_q3_k(const uint8_t* __restrict in, float* __restrict out, int64_t n) {
  for (; n > 0; n -= kSuper, in += 110, out += kSuper) {
    const float d = load_f16(in + 108);
    for (int group = 0; group < 16; ++group) {
      const int half = group / 8;
      const int part = group % 8 / 2;
      const uint8_t* high = in + 16 * (group % 2);
      const uint8_t* qs = in + 32 + 32 * half + 16 * (group % 2);
      const float scale = d * static_cast<float>(q3_k_scale(in + 96, group));
      float* __restrict y = out + 16 * group;
      // The third bit is stored inverted: set means "do not subtract 4".
      for (int l = 0; l < 16; ++l) {
        const int bit = (high[l] >> (4 * half + part)) & 1;
        y[l] = scale * static_cast<float>(((qs[l] >> (2 * part)) & 3) + 4 * bit - 4);
      }
    }
  }
}

void dequantise_q4_k(const uint8_t* __restrict in, float* __restrict out, int64_t n) {
  for (; n > 0; n -= kSuper, in += 144, out += kSuper) {
    const float d = load_f16(in);
    const float dmin = load_f16(in + 2);
    for (int pair = 0; pair < 4; ++pair) {  // two sub-blocks of 32: the low and the high nibbles of 32 bytes
      const uint8_t* qs = in + 16 + 32 * pair;
      const ScaleMin a = load_scale_min(in + 4, 2 * pair);
      const ScaleMin b = load_scale_min(in + 4, 2 * pair + 1);
      const float scale_a = d * static_cast<float>(a.scale), min_a = dmin * static_cast<float>(a.min);
      const float scale_b = d * static_cast<float>(b.scale), min_b = dmin * static_cast<float>(b.min);
      float* __restrict y = out + 64 * pair;
      for (int l = 0; l < 32; ++l) y[l] = scale_a * static_cast<float>(qs[l] & 15) - min_a;
      for (int l = 0; l < 32; ++l) y[l + 32] = scale_b * static_cast<float>(qs[l] >> 4) - min_b;
    }
  }
}

void dequantise_q5_k(const uint8_t* __restrict in, float* __restrict out, int64_t n) {
  for (; n > 0; n -= kSuper, in += 176, out += kSuper) {
    const float d = load_f16(in);
    const float dmin = load_f16(in + 2);
    const uint8_t* qh = in + 16;
    for (int pair = 0; pair < 4; ++pair) {
      const uint8_t* qs = in + 48 + 32 * pair;
      const ScaleMin a = load_scale_min(in + 4, 2 * pair);
      const ScaleMin b = load_scale_min(in + 4, 2 * pair + 1);
      const float scale_a = d * static_cast<float>(a.scale), min_a = dmin * static_cast<float>(a.min);
      const float scale_b = d * static_cast<float>(b.scale), min_b = dmin * static_cast<float>(b.min);
      float* __restrict y = out + 64 * pair;
      for (int l = 0; l < 32; ++l) {
        y[l] = scale_a * static_cast<float>((qs[l] & 15) | ((qh[l] >> (2 * pair)) & 1) << 4) - min_a;
      }
      for (int l = 0; l < 32; ++l) {
        y[l + 32] = scale_b * static_cast<float>((qs[l] >> 4) | ((qh[l] >> (2 * pair + 1)) & 1) << 4) - min_b;
      }
    }
  }
}

void dequantise_q6_k(const uint8_t* __restrict in, float* __restrict out, int64_t n) {
  for (; n > 0; n -= kSuper, in += 210, out += kSuper) {
    const float d = load_f16(in + 208);
    for (int group = 0; group < 16; ++group) {
      const int half = group / 8;
      const int part = group % 8 / 2;
      const int nibble = 4 * (part / 2);
      const uint8_t* ql = in + 64 * half + 32 * (part % 2) + 16 * (group % 2);
      const uint8_t* qh = in + 128 + 32 * half + 16 * (group % 2);
      const float scale = d * static_cast<float>(static_cast<int8_t>(in[192 + group]));
      float* __restrict y = out + 16 * group;
      for (int l = 0; l < 16; ++l) {
        const int code = ((ql[l] >> nibble) & 15) | ((qh[l] >> (2 * part)) & 3) << 4;
        y[l] = scale * static_cast<float>(code - 32);
      }
    }
  }
}

void dequantise_iq4_xs(const uint8_t* __restrict in, float* __restrict out, int64_t n) {
  for (; n > 0; n -= kSuper, in += 136, out += kSuper) {
    const float d = load_f16(in);
    const uint16_t scales_high = load_u16(in + 2);
    for (int group = 0; group < 8; ++group) {
      const int low = (in[4 + group / 2] >> (4 * (group % 2))) & 15;
      const int high = (scales_high >> (2 * group)) & 3;
      const float scale = d * static_cast<float>((low | high << 4) - 32);
      const uint8_t* qs = in + 8 + 16 * group;
      float* __restrict y = out + 32 * group;
      for (int j = 0; j < 16; ++j) {
        y[j] = scale * kNonLinear4[qs[j] & 15];
        y[j + 16] = scale * kNonLinear4[qs[j] >> 4];
      }
    }
  }
}

}  // namespace kz::blocks
