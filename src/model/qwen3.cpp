// Qwen3 (dense): docs/models/qwen3.md.
#include <array>

#include "model/architectures.h"
#include "model/dense.h"
#include "model/rope.h"

namespace kz {
namespace {

class Qwen3 final : public Model {
 public:
  explicit Qwen3(const gguf::File& file);
  StateLayout state_layout() const override { return dense_state_layout(config_); }
  WorkLimits work_limits(int64_t max_rows, int64_t n_positions) const override {
    return dense_work_limits(config_, max_rows, n_positions);
  }
  int64_t scratch_bytes(int64_t max_rows, int64_t) const override {
    return dense_scratch_bytes(config_, rope_.n_rot(), max_rows);
  }
  void bind(Binder& binder) override;
  void forward(Backend& op, const Rows& rows, Scratch& scratch, Tensor logits) const override;

 private:
  void attention(Backend& op, const Attention& w, int64_t layer, const Rows& rows, const DenseBuffers& t) const;

  RopeTable rope_;
  std::vector<int64_t> n_ff_;  // per layer
  Weight embedding_, head_;    // a tied model has no head of its own
  Tensor output_norm_;
  std::vector<DenseLayer> layers_;
};

Qwen3::Qwen3(const gguf::File& file) {
  ConfigReader read(file, "qwen3");
  CommonConfig common = read_common_config(read, ZeroHeads::refused);
  config_ = common.model;
  n_ff_ = std::move(common.n_ff);
  const RopeSettings rope = read_rope(read, config_, /*adjacent=*/false);
  read.raise();
  rope_ = make_rope_table(rope);
}

void Qwen3::bind(Binder& in) {
  const auto [d, H, V] = std::array{config_.n_embd, config_.n_heads, config_.n_vocab};
  in.matrix("token_embd.weight", d, V, embedding_);
  in.floats("output_norm.weight", {d}, output_norm_);
  in.optional_matrix("output.weight", d, V, head_);
  layers_.assign(n_ff_.size(), {});
  for (size_t i = 0; i < layers_.size(); ++i) {
    DenseLayer& w = layers_[i];
    const Binder block = in.block(static_cast<int64_t>(i));
    block.floats("attn_norm.weight", {d}, w.attn_norm);
    bind_qkv(block, config_, Biases::optional, w.attn);
    block.floats("attn_q_norm.weight", {config_.key_dim}, w.attn.q_norm);
    block.floats("attn_k_norm.weight", {config_.key_dim}, w.attn.k_norm);
    block.matrix("attn_output.weight", H * config_.value_dim, d, w.attn.out);
    block.floats("ffn_norm.weight", {d}, w.ffn_norm);
    bind_feed_forward(block, d, n_ff_[i], Biases::none, w.ffn);
  }
}

void Qwen3::forward(Backend& op, const Rows& rows, Scratch& scratch, Tensor logits) const {
  const DenseBuffers t = carve_dense(config_, rope_.n_rot(), rows.size(), scratch);
  op.rope_angles(rope_, rows, t.angles);
  op.embed(embedding_, rows, t.x);
  int64_t layer = 0;
  for (const DenseLayer& w : layers_) {
    op.rms_norm(t.x, w.attn_norm, config_.norm_eps, t.h);
    attention(op, w.attn, layer++, rows, t);
    op.add(t.x, t.h);
    op.rms_norm(t.x, w.ffn_norm, config_.norm_eps, t.h);
    feed_forward(op, w.ffn, t.h, t.gate, t.up);
    op.add(t.x, t.h);
  }
  finish_rows(op, config_, t.x, output_norm_, config_.tied ? embedding_ : head_, rows, t.h, logits);
}

void Qwen3::attention(Backend& op, const Attention& w, int64_t layer, const Rows& rows, const DenseBuffers& t) const {
  const Product projections[] = {{&w.q, t.q, w.q_bias}, {&w.k, t.k, w.k_bias}, {&w.v, t.v, w.v_bias}};
  op.linear_many(t.h, projections);
  const Tensor q = per_head(t.q, config_.n_heads);     // {D, H, R}
  const Tensor k = per_head(t.k, config_.n_kv_heads);  // {D, K, R}
  const Tensor v = per_head(t.v, config_.n_kv_heads);  // {D, K, R}
  op.rms_norm(q, w.q_norm, config_.norm_eps, q);
  op.rms_norm(k, w.k_norm, config_.norm_eps, k);
  op.rope(q, rope_, t.angles);
  op.rope(k, rope_, t.angles);
  op.append(k, v, layer, rows);
  op.attention(q, score_scale(config_.key_dim), layer, rows, per_head(t.o, config_.n_heads));
  op.linear(t.o, w.out, t.h);
}

}  // namespace

std::unique_ptr<Model> make_qwen3(const gguf::File& file) { return std::make_unique<Qwen3>(file); }

}  // namespace kz
