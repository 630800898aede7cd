// The gated delta rule, token by token, over some rows of a state. Part of the kernel template (see vector.h).
#pragma once

#include "cpu/template/vector.h"

namespace kz {
namespace {

/// One token over kRows state rows (values j .. j + kRows): decay, read with k, write, read with q. Lanes run along
/// the key index; every row's sums have the order of product().
template <int kWidth, int kRows>
KZ_INLINE void delta_step(const DeltaArgs& a, int64_t j, int64_t token) {
  using L = Lanes<kWidth>;
  using F = typename L::F;
  float* state = a.state + j * a.size;
  const float* q = a.q + token * a.qk_stride;
  const float* k = a.k + token * a.qk_stride;
  const float* v = a.v + token * a.v_stride + j;
  float* out = a.out + token * a.out_stride + j;
  const F decay = L::splat(a.decay[token * a.gate_stride]);
  const float strength = a.strength[token * a.gate_stride];

  F sum[kRows];
  for (int r = 0; r < kRows; ++r) sum[r] = F{};
  for_lanes<kWidth>(a.size, [&](auto load, auto store) {
    const F key = load(k);
    for (int r = 0; r < kRows; ++r) {
      const F m = load(state + r * a.size) * decay;
      store(state + r * a.size, m);
      sum[r] = sum[r] + m * key;
    }
  });
  F delta[kRows];
  for (int r = 0; r < kRows; ++r) {
    delta[r] = L::splat(strength * (v[r] - tree_sum(sum[r])));
    sum[r] = F{};
  }
  for_lanes<kWidth>(a.size, [&](auto load, auto store) {
    const F key = load(k), query = load(q);
    for (int r = 0; r < kRows; ++r) {
      const F m = load(state + r * a.size) + delta[r] * key;
      store(state + r * a.size, m);
      sum[r] = sum[r] + m * query;
    }
  });
  for (int r = 0; r < kRows; ++r) out[r] = tree_sum(sum[r]) * a.out_scale;
}

/// The rows stay in the first cache while all tokens walk over them.
template <int kWidth, int kRows>
void delta_walk(const DeltaArgs& a, int64_t j) {
  for (int64_t token = 0; token < a.n_tokens; ++token) delta_step<kWidth, kRows>(a, j, token);
}

template <int kWidth>
void delta(const DeltaArgs& a) {
  constexpr int kRows = 4;
  int64_t j = 0;
  for (; j + kRows <= a.n_values; j += kRows) delta_walk<kWidth, kRows>(a, j);
  for (; j < a.n_values; ++j) delta_walk<kWidth, 1>(a, j);
}

}  // namespace
}  // namespace kz
