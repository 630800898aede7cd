// The gated delta rule, token by token, over some rows of a state. Part of the kernel template (see vector.h).
#pragma once

#include "cpu/template/vector.h"

namespace kz {
namespace {

/// kRows rows of a state, which stay in the first cache while all tokens walk over them. Lanes run along the key index;
/// every sum has the order of product(). Both reads of a token happen before its write, in one sweep with the write of
/// the token before: M' q = e^g M q + delta (k . q), where M' = e^g M + delta k^T and delta = strength (v - e^g M k).
template <int kWidth, int kRows>
class DeltaWalk {
 public:
  using L = Lanes<kWidth>;
  using F = typename L::F;

  KZ_INLINE DeltaWalk(const DeltaArgs& a, int64_t j) : a_(a), j_(j), state_(a.state + j * a.size) {}

  KZ_INLINE void run() {
    read();
    for (int64_t token = 0; token + 1 < a_.n_tokens; ++token) {
      look_ahead(token);
      solve(token);
      write_and_read(token);
    }
    solve(a_.n_tokens - 1);
    write(a_.n_tokens - 1);
  }

 private:
  /// Values and outputs of neighbouring tokens are pages apart: the hardware does not fetch them in time.
  KZ_INLINE void look_ahead(int64_t token) const {
    constexpr int64_t kTokens = 6;
    if (token + kTokens >= a_.n_tokens) return;
    __builtin_prefetch(a_.v + (token + kTokens) * a_.v_stride + j_);
    __builtin_prefetch(a_.out + (token + kTokens) * a_.out_stride + j_, 1);
  }

  /// sums: M k, then M q, of the rows, as the state was before this token.
  KZ_INLINE void solve(int64_t token) {
    tree_sums(sum_, sums_);
    const float decay = a_.decay[token * a_.gate_stride], strength = a_.strength[token * a_.gate_stride];
    const float key_query = a_.key_query[token * a_.key_query_stride];
    const float* v = a_.v + token * a_.v_stride + j_;
    float* out = a_.out + token * a_.out_stride + j_;
    for (int r = 0; r < kRows; ++r) {
      delta_[r] = strength * (v[r] - decay * sums_[r]);
      out[r] = (decay * sums_[kRows + r] + delta_[r] * key_query) * a_.out_scale;
    }
  }

  KZ_INLINE void read() {
    F sum[2 * kRows];
    for (F& s : sum) s = F{};
    for_lanes<kWidth>(a_.size, [&](auto load, auto) {
      const F key = load(a_.k), query = load(a_.q);
      for (int r = 0; r < kRows; ++r) {
        const F m = load(state_ + r * a_.size);
        sum[r] = sum[r] + m * key;
        sum[kRows + r] = sum[kRows + r] + m * query;
      }
    });
    for (int i = 0; i < 2 * kRows; ++i) sum_[i] = sum[i];
  }

  KZ_INLINE void write_and_read(int64_t token) {
    const float *k = a_.k + token * a_.qk_stride, *next_k = k + a_.qk_stride;
    const float* next_q = a_.q + (token + 1) * a_.qk_stride;
    const F decay = L::splat(a_.decay[token * a_.gate_stride]);
    F delta[kRows], sum[2 * kRows];
    for (int r = 0; r < kRows; ++r) delta[r] = L::splat(delta_[r]);
    for (F& s : sum) s = F{};
    for_lanes<kWidth>(a_.size, [&](auto load, auto store) {
      const F key = load(k), read_key = load(next_k), read_query = load(next_q);
      for (int r = 0; r < kRows; ++r) {
        const F m = load(state_ + r * a_.size) * decay + delta[r] * key;
        store(state_ + r * a_.size, m);
        sum[r] = sum[r] + m * read_key;
        sum[kRows + r] = sum[kRows + r] + m * read_query;
      }
    });
    for (int i = 0; i < 2 * kRows; ++i) sum_[i] = sum[i];
  }

  KZ_INLINE void write(int64_t token) {
    const float* k = a_.k + token * a_.qk_stride;
    const F decay = L::splat(a_.decay[token * a_.gate_stride]);
    for_lanes<kWidth>(a_.size, [&](auto load, auto store) {
      const F key = load(k);
      for (int r = 0; r < kRows; ++r) {
        float* row = state_ + r * a_.size;
        store(row, load(row) * decay + L::splat(delta_[r]) * key);
      }
    });
  }

  const DeltaArgs& a_;
  int64_t j_;
  float* state_;
  F sum_[2 * kRows];
  float sums_[2 * kRows], delta_[kRows];
};

template <class Shape>
void delta(const DeltaArgs& a) {
  constexpr int kRows = Shape::kDeltaRows;
  if (a.n_tokens == 0) return;
  int64_t j = 0;
  for (; j + kRows <= a.n_values; j += kRows) DeltaWalk<Shape::kWidth, kRows>(a, j).run();
  for (; j < a.n_values; ++j) DeltaWalk<Shape::kWidth, 1>(a, j).run();
}

}  // namespace
}  // namespace kz
