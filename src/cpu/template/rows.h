// Elementwise work on one row: norms, gates, rotation, softmax, convolution. Part of the kernel template (see
// vector.h).
#pragma once

#include "cpu/template/vector.h"

namespace kz {
namespace {

/// Sixteen lanes of doubles, each the sum of the squares of elements k with k mod 16 == lane; then the fixed tree.
template <int kWidth>
double sum_of_squares(const float* x, int64_t n) {
  using L = Lanes<kWidth / 2>;  // a machine's vector holds half as many doubles
  using D = typename LanesOf<double, kLanes, kWidth / 2>::Type;
  D sum{};
  for_lanes<kWidth / 2>(n, [&](auto load, auto) {
    const D value = Between<D, typename L::F>::value(load(x));
    sum = sum + value * value;
  });
  return tree_sum(sum);
}

template <int kWidth>
float dot(const float* x, const float* y, int64_t n) {
  typename Lanes<kWidth>::F sum{};
  for_lanes<kWidth>(n, [&](auto load, auto) { sum = sum + load(x) * load(y); });
  return tree_sum(sum);
}

template <int kWidth>
void exponential(const float* x, float* out, int64_t n) {
  for_lanes<kWidth>(n, [&](auto load, auto store) { store(out, exp_lanes<kWidth>(load(x))); });
}

template <int kWidth>
void sigmoid(const float* x, float* out, int64_t n) {
  for_lanes<kWidth>(n, [&](auto load, auto store) { store(out, sigmoid_lanes<kWidth>(load(x))); });
}

template <int kWidth>
void scale_row(const float* x, float scale, const float* w, float* out, int64_t n) {
  const auto factor = Lanes<kWidth>::splat(scale);
  if (w == nullptr) {
    for_lanes<kWidth>(n, [&](auto load, auto store) { store(out, load(x) * factor); });
  } else {
    for_lanes<kWidth>(n, [&](auto load, auto store) { store(out, load(x) * factor * load(w)); });
  }
}

template <int kWidth>
void scale_silu_gate(float* x, float scale, const float* w, const float* z, int64_t n) {
  const auto factor = Lanes<kWidth>::splat(scale);
  for_lanes<kWidth>(n,
                    [&](auto load, auto store) { store(x, load(x) * factor * load(w) * silu_lanes<kWidth>(load(z))); });
}

template <int kWidth>
void swiglu(const float* gate, const float* up, float* out, int64_t n) {
  for_lanes<kWidth>(n, [&](auto load, auto store) { store(out, silu_lanes<kWidth>(load(gate)) * load(up)); });
}

template <int kWidth>
void sigmoid_gate(float* x, const float* gate, int64_t n) {
  for_lanes<kWidth>(n, [&](auto load, auto store) { store(x, load(x) * sigmoid_lanes<kWidth>(load(gate))); });
}

template <int kWidth>
void add(float* x, const float* y, int64_t n) {
  for_lanes<kWidth>(n, [&](auto load, auto store) { store(x, load(x) + load(y)); });
}

template <int kWidth>
void divide(const float* x, float divisor, float* out, int64_t n) {
  const auto d = Lanes<kWidth>::splat(divisor);
  for_lanes<kWidth>(n, [&](auto load, auto store) { store(out, load(x) / d); });
}

template <int kWidth>
void rotate(float* a, float* b, const float* cos, const float* sin, int64_t n) {
  for_lanes<kWidth>(n, [&](auto load, auto store) {
    const auto x = load(a), y = load(b), c = load(cos), s = load(sin);
    store(a, x * c - y * s);
    store(b, x * s + y * c);
  });
}

/// Largest of scale * score over whole vectors; the order of comparisons does not change the result.
template <int kWidth>
float largest_score(const float* scores, int64_t n, float scale) {
  using L = Lanes<kWidth>;
  using F = typename L::F;
  const float first = scores[0] * scale;
  F largest = L::splat(first);
  int64_t at = 0;
  for (; at + kLanes <= n; at += kLanes) {
    const F score = L::load(scores + at) * L::splat(scale);
    largest = Ops<F>::less(largest, score, score, largest);
  }
  float lanes[kLanes];
  L::store(lanes, largest);
  float result = first;
  for (int64_t i = 0; i < kLanes; ++i) result = result < lanes[i] ? lanes[i] : result;
  for (; at < n; ++at) result = result < scores[at] * scale ? scores[at] * scale : result;
  return result;
}

template <int kWidth>
SoftmaxPart softmax(float* scores, int64_t n, float scale) {
  using L = Lanes<kWidth>;
  using F = typename L::F;
  const float largest = largest_score<kWidth>(scores, n, scale);
  F sum{};
  int64_t at = 0;
  for (; at + kLanes <= n; at += kLanes) {
    const F weight = exp_lanes<kWidth>(L::load(scores + at) * L::splat(scale) - L::splat(largest));
    L::store(scores + at, weight);
    sum = sum + weight;
  }
  if (at < n) {
    const F score = L::load_part(scores + at, n - at) * L::splat(scale) - L::splat(largest);
    L::store_part(scores + at, exp_lanes<kWidth>(score), n - at);
    sum = sum + L::load_part(scores + at, n - at);
  }
  return {largest, tree_sum(sum)};
}

/// e^x of one value, by the same operations as sixteen.
template <int kWidth>
float exp_one(float x) {
  float lanes[kLanes];
  Lanes<kWidth>::store(lanes, exp_lanes<kWidth>(Lanes<kWidth>::splat(x)));
  return lanes[0];
}

template <int kWidth>
SoftmaxPart merge(float* out, SoftmaxPart part, const float* later_out, SoftmaxPart later, int64_t n) {
  const float largest = part.largest < later.largest ? later.largest : part.largest;
  const float keep = exp_one<kWidth>(part.largest - largest);
  const float take = exp_one<kWidth>(later.largest - largest);
  const auto k = Lanes<kWidth>::splat(keep), t = Lanes<kWidth>::splat(take);
  for_lanes<kWidth>(n, [&](auto load, auto store) { store(out, load(out) * k + load(later_out) * t); });
  return {largest, part.sum * keep + later.sum * take};
}

template <int kTaps>
KZ_INLINE void transpose_fixed(const float* __restrict w, int64_t n, float* __restrict out) {
  for (int64_t c = 0; c < n; ++c) {
    for (int64_t t = 0; t < kTaps; ++t) out[t * n + c] = w[c * kTaps + t];
  }
}

inline void transpose_taps(const float* w, int64_t stride, int64_t n_taps, int64_t n, float* out) {
  if (n_taps == 4 && stride == 4) return transpose_fixed<4>(w, n, out);  // what models have
  for (int64_t t = 0; t < n_taps; ++t) {
    for (int64_t c = 0; c < n; ++c) out[t * n + c] = w[c * stride + t];
  }
}

template <int kWidth>
void conv_silu(const ConvArgs& a) {
  for_lanes<kWidth>(a.n, [&](auto load, auto store) {
    auto sum = load(a.inputs[0]) * load(a.weights);
    for (int64_t tap = 1; tap < a.n_taps; ++tap) sum = sum + load(a.inputs[tap]) * load(a.weights + tap * a.n);
    store(a.out, silu_lanes<kWidth>(sum));
  });
}

}  // namespace
}  // namespace kz
