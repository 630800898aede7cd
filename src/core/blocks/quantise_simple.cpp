// Q4_0, Q4_1, Q5_0, Q5_1, Q8_0: one pass for the scale, one for the codes. IQ4_NL: two scales tried, each refined once.
#include <algorithm>
#include <cmath>

#include "core/blocks/codebook.h"
#include "core/blocks/layout.h"
#include "core/blocks/quantise.h"

namespace kz::blocks {
namespace {

constexpr int kHalf = kSmall / 2;

/// 1 / d, or 0 where that is no number: d is 0 or so small that its fp16 form is 0 and the codes have no meaning.
float inverse(float d) {
  if (d == 0.0f) return 0.0f;
  const float inv = 1.0f / d;
  return std::isfinite(inv) ? inv : 0.0f;
}

/// The value of largest magnitude, the first one where several are equal.
float extreme(const float* x) {
  float most = 0.0f;
  float value = 0.0f;
  for (int i = 0; i < kSmall; ++i) {
    if (std::fabs(x[i]) > most) {
      most = std::fabs(x[i]);
      value = x[i];
    }
  }
  return value;
}

struct Range {
  float min;
  float max;
};
Range range_of(const float* x) {
  Range r{x[0], x[0]};
  for (int i = 1; i < kSmall; ++i) {
    r.min = std::min(r.min, x[i]);
    r.max = std::max(r.max, x[i]);
  }
  return r;
}

/// Truncates a non-negative scaled value to a code.
uint8_t code_of(float scaled, int most) { return static_cast<uint8_t>(std::min(most, static_cast<int>(scaled))); }

/// Rounds to nearest, halves away from zero. x - whole is exact, which x + 0.5 would not be.
int round_away(float x) {
  const int whole = static_cast<int>(x);
  const float rest = x - static_cast<float>(whole);
  return whole + static_cast<int>(rest >= 0.5f) - static_cast<int>(rest <= -0.5f);
}

void pack_nibbles(const uint8_t* codes, uint8_t* qs) {
  for (int j = 0; j < kHalf; ++j) qs[j] = static_cast<uint8_t>((codes[j] & 15) | (codes[j + kHalf] & 15) << 4);
}

uint32_t fifth_bits(const uint8_t* codes) {
  uint32_t qh = 0;
  for (int i = 0; i < kSmall; ++i) qh |= static_cast<uint32_t>(codes[i] >> 4 & 1) << i;
  return qh;
}

/// Codes around a middle: value = (code - middle) * d, the extreme value gets code 0. Returns d.
float signed_codes(const float* x, int middle, uint8_t* codes) {
  const float d = extreme(x) / static_cast<float>(-middle);
  const float inv = inverse(d);
  const float offset = static_cast<float>(middle) + 0.5f;
  for (int i = 0; i < kSmall; ++i) codes[i] = code_of(x[i] * inv + offset, 2 * middle - 1);
  return d;
}

/// Codes above the minimum: value = code * d + min. Returns d.
float unsigned_codes(const float* x, Range r, int most, uint8_t* codes) {
  const float d = (r.max - r.min) / static_cast<float>(most);
  const float inv = inverse(d);
  for (int i = 0; i < kSmall; ++i) codes[i] = code_of((x[i] - r.min) * inv + 0.5f, most);
  return d;
}

/// Codes of the nearest values of the table; the lower one of two that are equally near.
void nearest_codes(const float* x, float inv, uint8_t* codes) {
  int32_t above[kSmall] = {};
  for (int code = 0; code < 15; ++code) {
    const float middle = 0.5f * (kNonLinear4[code] + kNonLinear4[code + 1]);
    for (int i = 0; i < kSmall; ++i) above[i] += x[i] * inv > middle ? 1 : 0;
  }
  for (int i = 0; i < kSmall; ++i) codes[i] = static_cast<uint8_t>(above[i]);
}

/// A scale, its codes and the sum of squared errors.
struct TableFit {
  float d = 0;
  float error = 0;
  uint8_t codes[kSmall];

  TableFit(const float* x, float scale) : d(scale) {
    nearest_codes(x, inverse(d), codes);
    for (int i = 0; i < kSmall; ++i) {
      const float rest = x[i] - d * kNonLinear4[codes[i]];
      error += rest * rest;
    }
  }
  /// The scale with the least squared error for these codes.
  float best_scale(const float* x) const {
    float product = 0, square = 0;
    for (int i = 0; i < kSmall; ++i) {
      product += x[i] * kNonLinear4[codes[i]];
      square += kNonLinear4[codes[i]] * kNonLinear4[codes[i]];
    }
    return product / square;
  }
};

float as_f16(float d) { return f16_to_f32(f32_to_f16(d)); }

}  // namespace

void quantise_q4_0(const float* x, uint8_t* out) {
  uint8_t codes[kSmall];
  store_f16(out, signed_codes(x, 8, codes));
  pack_nibbles(codes, out + 2);
}

void quantise_q5_0(const float* x, uint8_t* out) {
  uint8_t codes[kSmall];
  store_f16(out, signed_codes(x, 16, codes));
  store_u32(out + 2, fifth_bits(codes));
  pack_nibbles(codes, out + 6);
}

void quantise_q4_1(const float* x, uint8_t* out) {
  uint8_t codes[kSmall];
  const Range r = range_of(x);
  store_f16(out, unsigned_codes(x, r, 15, codes));
  store_f16(out + 2, r.min);
  pack_nibbles(codes, out + 4);
}

void quantise_q5_1(const float* x, uint8_t* out) {
  uint8_t codes[kSmall];
  const Range r = range_of(x);
  store_f16(out, unsigned_codes(x, r, 31, codes));
  store_f16(out + 2, r.min);
  store_u32(out + 4, fifth_bits(codes));
  pack_nibbles(codes, out + 8);
}

void quantise_q8_0(const float* x, uint8_t* out) {
  const float d = std::fabs(extreme(x)) / 127.0f;
  const float inv = inverse(d);
  store_f16(out, d);
  for (int i = 0; i < kSmall; ++i) out[2 + i] = static_cast<uint8_t>(round_away(x[i] * inv));
}

void quantise_iq4_nl(const float* x, uint8_t* out) {
  // The value of largest magnitude gets one end of the table or the other; then the scale is fitted to the codes.
  const float value = extreme(x);
  TableFit best(x, as_f16(value / kNonLinear4[0]));
  for (const float end : {kNonLinear4[0], kNonLinear4[15]}) {
    if (!std::isfinite(best.d)) break;  // no fp16 scale is large enough: the caller refuses the block
    const TableFit first(x, as_f16(value / end));
    const TableFit second(x, as_f16(first.best_scale(x)));
    for (const TableFit& fit : {first, second}) {
      if (fit.error < best.error) best = fit;
    }
  }
  store_f16(out, best.d);
  pack_nibbles(best.codes, out + 2);
}

}  // namespace kz::blocks
