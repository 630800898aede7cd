// Q4_K, Q5_K, Q6_K: a small search per group for the scale that loses least, then 6- or 8-bit scales for the groups.
// All sums are float32 in index order; the searches follow the reference step by step, so that the bytes are the same.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/blocks/layout.h"
#include "core/blocks/quantise.h"

namespace kz::blocks {
namespace {

constexpr float kNothing = 1e-15f;  // groups below this magnitude are stored as zeros

/// Rounds half to even and clamps. Adding 1.5 * 2^23 leaves the integer in the low bits of the sum.
int round_to(float x, int least, int most) {
  const float inside = std::min(std::max(static_cast<float>(least), x), static_cast<float>(most));  // NaN gives least
  return static_cast<int>(std::bit_cast<uint32_t>(inside + 12582912.0f) & 0x7fffffu) - 0x400000;
}

// --- Q6_K: symmetric groups of 16 ---

constexpr int kGroup16 = 16;

struct Fit {
  float xl = 0.0f;  // sum of w * x * code
  float ll = 0.0f;  // sum of w * code^2
};

/// Codes of x under `inv`, and the sums for their best scale; weights are x^2.
Fit fit_symmetric(const float* x, float inv, int8_t* codes) {
  Fit f;
  for (int i = 0; i < kGroup16; ++i) {
    const int code = round_to(inv * x[i], -32, 31);
    const float l = static_cast<float>(code);
    const float w = x[i] * x[i];
    codes[i] = static_cast<int8_t>(code);
    f.xl += w * x[i] * l;
    f.ll += w * l * l;
  }
  return f;
}

/// Writes codes -32..31 (all -32 for a group of zeros, whose scale is 0) and returns the scale.
float search_symmetric(const float* x, int8_t* codes) {
  float most = 0.0f;
  float extreme = 0.0f;
  for (int i = 0; i < kGroup16; ++i) {
    if (std::fabs(x[i]) > most) {
      most = std::fabs(x[i]);
      extreme = x[i];
    }
  }
  if (most < kNothing) {
    std::fill_n(codes, kGroup16, int8_t{-32});
    return 0.0f;
  }
  const Fit first = fit_symmetric(x, -32.0f / extreme, codes);
  float scale = first.ll != 0.0f ? first.xl / first.ll : 0.0f;
  float best = scale * first.xl;
  for (int k = -9; k <= 9; ++k) {
    if (k == 0) continue;
    int8_t other[kGroup16];
    const Fit f = fit_symmetric(x, -(32.0f + 0.1f * static_cast<float>(k)) / extreme, other);
    if (f.ll > 0.0f && f.xl * f.xl > best * f.ll) {
      std::copy_n(other, kGroup16, codes);
      scale = f.xl / f.ll;
      best = scale * f.xl;
    }
  }
  return scale;
}

/// Codes 0..63 of a whole block into the low nibbles, high nibbles and pairs of high bits of Q6_K.
void pack_q6_k(const uint8_t* codes, uint8_t* ql, uint8_t* qh) {
  for (int half = 0; half < 2; ++half, codes += 128, ql += 64, qh += 32) {
    for (int l = 0; l < 32; ++l) {
      const uint8_t c[4] = {codes[l], codes[l + 32], codes[l + 64], codes[l + 96]};
      ql[l] = static_cast<uint8_t>((c[0] & 15) | (c[2] & 15) << 4);
      ql[l + 32] = static_cast<uint8_t>((c[1] & 15) | (c[3] & 15) << 4);
      qh[l] = static_cast<uint8_t>(c[0] >> 4 | (c[1] >> 4) << 2 | (c[2] >> 4) << 4 | (c[3] >> 4) << 6);
    }
  }
}

// --- Q4_K and Q5_K: groups of 32 with a minimum ---

constexpr int kGroup32 = 32;
constexpr int kGroups = kSuper / kGroup32;

/// What distinguishes the searches of Q4_K and Q5_K: the largest code and the scales that are tried.
struct SearchPlan {
  int most;
  float first_step;
  int steps;
};

struct ScaleAndMin {
  float scale;
  float min;  // subtracted: value = scale * code - min
};

/// Weighted squared error of scale * code + min.
float error_of(const float* x, const float* w, const uint8_t* codes, float scale, float min) {
  float sum = 0.0f;
  for (int i = 0; i < kGroup32; ++i) {
    float diff = scale * static_cast<float>(codes[i]) + min - x[i];
    diff = diff * diff;
    sum += w[i] * diff;
  }
  return sum;
}

struct Line {
  float scale;
  float min;
  bool found;
};

/// The weighted least-squares line through (code, x), with a minimum that is not above zero.
Line best_line(const float* x, const float* w, const uint8_t* codes, float sum_w, float sum_x) {
  float sum_l = 0.0f, sum_ll = 0.0f, sum_xl = 0.0f;
  for (int i = 0; i < kGroup32; ++i) {
    const float l = static_cast<float>(codes[i]);
    sum_l += w[i] * l;
    sum_ll += w[i] * l * l;
    sum_xl += w[i] * l * x[i];
  }
  const float determinant = sum_w * sum_ll - sum_l * sum_l;
  if (!(determinant > 0.0f)) return {0.0f, 0.0f, false};
  const float scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
  const float min = (sum_ll * sum_x - sum_l * sum_xl) / determinant;
  if (min > 0.0f) return {sum_xl / sum_ll, 0.0f, true};
  return {scale, min, true};
}

void codes_of(const float* x, float inv, float min, int most, uint8_t* codes) {
  for (int i = 0; i < kGroup32; ++i) codes[i] = static_cast<uint8_t>(round_to(inv * (x[i] - min), 0, most));
}

ScaleAndMin search_with_min(const float* x, const SearchPlan& plan, uint8_t* codes) {
  float w[kGroup32];
  float sum_squares = 0.0f;
  for (int i = 0; i < kGroup32; ++i) sum_squares += x[i] * x[i];
  const float average = std::sqrt(sum_squares / static_cast<float>(kGroup32));
  float min = x[0], max = x[0], sum_w = 0.0f, sum_x = 0.0f;
  for (int i = 0; i < kGroup32; ++i) {
    w[i] = average + std::fabs(x[i]);
    if (x[i] < min) min = x[i];
    if (x[i] > max) max = x[i];
    sum_w += w[i];
    sum_x += w[i] * x[i];
  }
  if (min > 0.0f) min = 0.0f;
  const float most = static_cast<float>(plan.most);
  // A range this small has no finite inverse scale; fp16 could not hold its scale anyway.
  if (max - min < 64.0f * std::numeric_limits<float>::min()) {
    std::fill_n(codes, kGroup32, uint8_t{0});
    return {0.0f, -min};
  }
  const float inv = most / (max - min);
  float scale = 1.0f / inv;
  codes_of(x, inv, min, plan.most, codes);
  float best = error_of(x, w, codes, scale, min);
  for (int k = 0; k <= plan.steps; ++k) {
    uint8_t other[kGroup32];
    // The range is that of the best minimum so far, not of the first one.
    const float tried = (plan.first_step + 0.1f * static_cast<float>(k) + most) / (max - min);
    codes_of(x, tried, min, plan.most, other);
    const Line line = best_line(x, w, other, sum_w, sum_x);
    if (!line.found) continue;
    const float loss = error_of(x, w, other, line.scale, line.min);
    if (loss < best) {
      std::copy_n(other, kGroup32, codes);
      best = loss;
      scale = line.scale;
      min = line.min;
    }
  }
  return {scale, -min};
}

/// Stores sub-block j's 6-bit scale and minimum; the inverse of load_scale_min(). The bytes start as zeros.
void store_scale_min(uint8_t* q, int j, int scale, int min) {
  const auto put = [q](int byte, int bits) { q[byte] = static_cast<uint8_t>(q[byte] | bits); };
  if (j < 4) {
    put(j, scale);
    put(j + 4, min);
  } else {
    put(j + 4, (scale & 15) | (min & 15) << 4);
    put(j - 4, (scale >> 4) << 6);
    put(j, (min >> 4) << 6);
  }
}

/// Writes d, dmin and the packed pairs (16 bytes) and the final codes of the block.
void quantise_groups(const float* x, const SearchPlan& plan, uint8_t* header, uint8_t* codes) {
  ScaleAndMin found[kGroups];
  float max_scale = 0.0f, max_min = 0.0f;
  for (int j = 0; j < kGroups; ++j) {
    found[j] = search_with_min(x + kGroup32 * j, plan, codes + kGroup32 * j);
    max_scale = std::max(max_scale, found[j].scale);
    max_min = std::max(max_min, found[j].min);
  }
  const float inv_scale = max_scale > 0.0f ? 63.0f / max_scale : 0.0f;
  const float inv_min = max_min > 0.0f ? 63.0f / max_min : 0.0f;
  std::fill_n(header, 16, uint8_t{0});
  store_f16(header, max_scale / 63.0f);
  store_f16(header + 2, max_min / 63.0f);
  for (int j = 0; j < kGroups; ++j) {
    store_scale_min(header + 4, j, round_to(inv_scale * found[j].scale, 0, 63),
                    round_to(inv_min * found[j].min, 0, 63));
  }
  for (int j = 0; j < kGroups; ++j) {
    const ScaleMin s = load_scale_min(header + 4, j);
    const float d = load_f16(header) * static_cast<float>(s.scale);
    if (d == 0.0f) continue;  // the codes of the search stay
    const float min = load_f16(header + 2) * static_cast<float>(s.min);
    for (int i = kGroup32 * j; i < kGroup32 * (j + 1); ++i) {
      codes[i] = static_cast<uint8_t>(round_to((x[i] + min) / d, 0, plan.most));
    }
  }
}

/// Low nibbles of 64 codes into 32 bytes: the first 32 codes low, the others high.
void pack_pairs(const uint8_t* codes, uint8_t* qs) {
  for (int pair = 0; pair < 4; ++pair, codes += 64, qs += 32) {
    for (int l = 0; l < 32; ++l) qs[l] = static_cast<uint8_t>((codes[l] & 15) | (codes[l + 32] & 15) << 4);
  }
}

}  // namespace

void quantise_q4_k(const float* x, uint8_t* out) {
  uint8_t codes[kSuper];
  quantise_groups(x, {15, -1.0f, 20}, out, codes);
  pack_pairs(codes, out + 16);
}

void quantise_q5_k(const float* x, uint8_t* out) {
  uint8_t codes[kSuper];
  quantise_groups(x, {31, -0.5f, 15}, out, codes);
  for (int l = 0; l < 32; ++l) {
    int bits = 0;
    for (int j = 0; j < kGroups; ++j) bits |= (codes[32 * j + l] >> 4) << j;
    out[16 + l] = static_cast<uint8_t>(bits);
  }
  pack_pairs(codes, out + 48);
}

void quantise_q6_k(const float* x, uint8_t* out) {
  constexpr int kGroups16 = kSuper / kGroup16;
  int8_t centred[kSuper];
  float scales[kGroups16];
  float extreme = 0.0f;
  for (int g = 0; g < kGroups16; ++g) {
    scales[g] = search_symmetric(x + kGroup16 * g, centred + kGroup16 * g);
    if (std::fabs(scales[g]) > std::fabs(extreme)) extreme = scales[g];
  }
  if (std::fabs(extreme) < kNothing) {
    std::fill_n(out, 210, uint8_t{0});
    return;
  }
  const float inv = -128.0f / extreme;
  store_f16(out + 208, 1.0f / inv);
  const float stored = load_f16(out + 208);
  uint8_t codes[kSuper];
  for (int g = 0; g < kGroups16; ++g) {
    const int group_scale = round_to(inv * scales[g], -128, 127);
    out[192 + g] = static_cast<uint8_t>(group_scale);
    const float d = stored * static_cast<float>(group_scale);
    for (int i = kGroup16 * g; i < kGroup16 * (g + 1); ++i) {
      const int code = d != 0.0f ? round_to(x[i] / d, -32, 31) : centred[i];
      codes[i] = static_cast<uint8_t>(code + 32);
    }
  }
  pack_q6_k(codes, out, out + 128);
}

}  // namespace kz::blocks
