#include "model/dense.h"

#include <algorithm>
#include <cmath>

namespace kz {

DenseBuffers carve_dense(const ModelConfig& c, int64_t n_rot, int64_t n_rows, Scratch& scratch) {
  DenseBuffers t;
  t.x = scratch.take(c.n_embd, n_rows);
  t.h = scratch.take(c.n_embd, n_rows);
  t.angles = scratch.take(n_rot, n_rows);

  Scratch attention = scratch;
  t.q = attention.take(c.n_heads * c.key_dim, n_rows);
  t.k = attention.take(c.n_kv_heads * c.key_dim, n_rows);
  t.v = attention.take(c.n_kv_heads * c.value_dim, n_rows);
  t.o = attention.take(c.n_heads * c.value_dim, n_rows);

  Scratch feed_forward = scratch;
  t.gate = feed_forward.take(c.n_ff, n_rows);
  t.up = feed_forward.take(c.n_ff, n_rows);

  scratch = attention.used_bytes() > feed_forward.used_bytes() ? attention : feed_forward;
  return t;
}

int64_t dense_scratch_bytes(const ModelConfig& config, int64_t n_rot, int64_t n_rows) {
  Scratch measure;
  carve_dense(config, n_rot, n_rows, measure);
  return static_cast<int64_t>(measure.used_bytes());
}

StateLayout dense_state_layout(const ModelConfig& c) {
  StateLayout layout;
  layout.attention.assign(static_cast<size_t>(c.n_layers), {c.n_kv_heads, c.key_dim, c.value_dim});
  return layout;
}

WorkLimits dense_work_limits(const ModelConfig& c, int64_t max_rows, int64_t n_positions) {
  WorkLimits limits;
  limits.rows = max_rows;
  limits.heads = c.n_heads;
  limits.head_dim = std::max(c.key_dim, c.value_dim);
  limits.positions = n_positions;
  limits.features = std::max({c.n_embd, c.n_ff, c.n_heads * c.value_dim});
  return limits;
}

void bind_qkv(const Binder& in, const ModelConfig& c, Biases biases, Attention& to) {
  const int64_t q_rows = c.n_heads * c.key_dim;
  const int64_t k_rows = c.n_kv_heads * c.key_dim;
  const int64_t v_rows = c.n_kv_heads * c.value_dim;
  const auto wanted = [&](std::string_view bias) { return biases == Biases::required || in.has(bias); };
  if (in.has("attn_qkv.weight")) {
    in.stacked_matrices("attn_qkv.weight", c.n_embd, {{q_rows, to.q}, {k_rows, to.k}, {v_rows, to.v}});
    if (!wanted("attn_qkv.bias")) return;
    in.stacked_floats("attn_qkv.bias", {{q_rows, to.q_bias}, {k_rows, to.k_bias}, {v_rows, to.v_bias}});
    return;
  }
  in.matrix("attn_q.weight", c.n_embd, q_rows, to.q);
  in.matrix("attn_k.weight", c.n_embd, k_rows, to.k);
  in.matrix("attn_v.weight", c.n_embd, v_rows, to.v);
  if (wanted("attn_q.bias")) in.floats("attn_q.bias", {q_rows}, to.q_bias);
  if (wanted("attn_k.bias")) in.floats("attn_k.bias", {k_rows}, to.k_bias);
  if (wanted("attn_v.bias")) in.floats("attn_v.bias", {v_rows}, to.v_bias);
}

void bind_feed_forward(const Binder& in, int64_t n_embd, int64_t n_ff, Biases biases, FeedForward& to) {
  in.matrix("ffn_gate.weight", n_embd, n_ff, to.gate);
  in.matrix("ffn_up.weight", n_embd, n_ff, to.up);
  in.matrix("ffn_down.weight", n_ff, n_embd, to.down);
  if (biases == Biases::none) return;
  in.optional_floats("ffn_gate.bias", {n_ff}, to.gate_bias);
  in.optional_floats("ffn_up.bias", {n_ff}, to.up_bias);
  in.optional_floats("ffn_down.bias", {n_embd}, to.down_bias);
}

void feed_forward(Backend& op, const FeedForward& w, Tensor h, Tensor gate, Tensor up) {
  gate = slice(gate, 0, w.gate.rows);  // layers may differ in F
  up = slice(up, 0, w.up.rows);
  const Product gate_and_up[] = {{&w.gate, gate, w.gate_bias}, {&w.up, up, w.up_bias}};
  op.linear_many(h, gate_and_up);
  op.swiglu(gate, up, gate);
  op.linear(gate, w.down, h, w.down_bias);
}

void finish_rows(Backend& op, const ModelConfig& config, Tensor x, Tensor norm, const Weight& head, const Rows& rows,
                 Tensor h, Tensor logits) {
  const auto n = static_cast<int64_t>(rows.logit_rows.size());
  if (n > 0) op.finish(x, norm, config.norm_eps, head, rows, rows_of(h, 0, n), logits);
}

Tensor per_head(const Tensor& x, int64_t heads) {
  const int64_t head_dim = x.ne[0] / heads;
  return heads_view(x, 0, head_dim, heads, head_dim);
}

float score_scale(int64_t key_dim) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(key_dim))); }

}  // namespace kz
