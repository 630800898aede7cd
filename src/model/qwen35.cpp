// Qwen3.5: gated delta-net layers with a gated attention layer after every few of them: docs/models/qwen35.md.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/architectures.h"
#include "model/dense.h"
#include "model/rope.h"

namespace kz {
namespace {

/// Gated delta net: nk key heads, nv value heads, all of S features; C = 2 nk S + nv S channels.
struct DeltaNet {
  Weight qkv, z, beta, alpha, out;
  Tensor conv, dt_bias, a, norm;
};

struct Layer {
  bool recurrent = false;
  int64_t index = 0;  ///< among the layers of its kind
  int64_t n_ff = 0;
  Tensor norm;
  DeltaNet delta;
  Attention attn;
  Tensor ffn_norm;
  FeedForward ffn;
};

/// The activations of one forward of R rows. Delta net, attention and feed-forward network share their place.
struct Buffers {
  Tensor x;            ///< {d, R} the residual stream
  Tensor h;            ///< {d, R} normed input of a block, then its output
  Tensor angles;       ///< {n_rot, R}
  Tensor u;            ///< {C, R} queries, keys and values of the delta rule
  Tensor z;            ///< {nv * S, R}
  Tensor alpha, beta;  ///< {nv, R}
  Tensor q_gate;       ///< {H * 2 D, R} query and gate of each head side by side
  Tensor k, v;         ///< {K * D, R}
  Tensor o;            ///< {max(nv * S, H * D), R} what either mixer put together
  Tensor gate, up;     ///< {F, R}
};

class Qwen35 final : public Model {
 public:
  explicit Qwen35(const gguf::File& file);
  StateLayout state_layout() const override;
  WorkLimits work_limits(int64_t max_rows, int64_t n_positions) const override;
  int64_t scratch_bytes(int64_t max_rows, int64_t max_logit_rows) const override;
  void bind(Binder& binder) override;
  void forward(Backend& op, const Rows& rows, Scratch& scratch, Tensor logits) const override;

 private:
  void read_delta_net(ConfigReader& read);
  void read_layers(ConfigReader& read, const CommonConfig& common);
  void check_sections(ConfigReader& read) const;
  int64_t key_features() const { return nk_ * S_; }
  int64_t value_features() const { return nv_ * S_; }
  int64_t channels() const { return 2 * key_features() + value_features(); }

  void bind_delta_net(const Binder& block, DeltaNet& to) const;
  void bind_attention(const Binder& block, Attention& to) const;
  void note_mtp(const Binder& binder) const;

  Buffers carve(int64_t n_rows, Scratch& scratch) const;
  void delta_net(Backend& op, const DeltaNet& w, int64_t layer, const Rows& rows, const Buffers& t) const;
  void gated_attention(Backend& op, const Attention& w, int64_t layer, const Rows& rows, const Buffers& t) const;

  int64_t nk_ = 1, nv_ = 1, S_ = 1;
  int64_t conv_kernel_ = 4;
  int64_t n_mtp_ = 0;  // blocks behind the trunk
  RopeTable rope_;
  Weight embedding_, head_;  // a tied model has no head of its own
  Tensor output_norm_;
  std::vector<Layer> layers_;
};

Qwen35::Qwen35(const gguf::File& file) {
  ConfigReader read(file, "qwen35");
  const CommonConfig common = read_common_config(read, ZeroHeads::allowed);
  config_ = common.model;
  n_mtp_ = read.integer_or("nextn_predict_layers", 0, 0, config_.n_layers - 1);
  config_.n_layers -= n_mtp_;
  const RopeSettings rope = read_rope(read, config_, /*adjacent=*/false);
  read_delta_net(read);
  read_layers(read, common);
  read.expect(config_.key_dim == config_.value_dim, "attention.value_length", "is not the key length");
  if (read.ok()) rope_ = make_rope_table(rope);
  check_sections(read);
  read.raise();
}

void Qwen35::read_delta_net(ConfigReader& read) {
  conv_kernel_ = read.integer("ssm.conv_kernel", 2, 64);
  S_ = read.integer("ssm.state_size", 1, 4096);
  nk_ = read.integer("ssm.group_count", 1, 4096);
  nv_ = read.integer("ssm.time_step_rank", 1, 4096);
  const int64_t inner = read.integer("ssm.inner_size", 1, int64_t{1} << 24);
  if (!read.ok()) return;
  read.expect(nv_ % nk_ == 0, "ssm.time_step_rank",
              fmt::format("is {}, expected a multiple of ssm.group_count {}", nv_, nk_));
  read.expect(inner == nv_ * S_, "ssm.inner_size",
              fmt::format("is {}, expected time_step_rank * state_size = {}", inner, nv_ * S_));
}

void Qwen35::read_layers(ConfigReader& read, const CommonConfig& common) {
  const int64_t interval = read.integer_or("full_attention_interval", 4, 1, 512);
  std::vector<int64_t> recurrent(common.n_ff.size());  // of all blocks, like the other keys per layer
  for (size_t i = 0; i < recurrent.size(); ++i) recurrent[i] = (static_cast<int64_t>(i) + 1) % interval != 0;
  if (read.has("attention.recurrent_layers")) {
    recurrent = read.per_layer("attention.recurrent_layers", static_cast<int64_t>(recurrent.size()), 0, 255);
  }
  layers_.resize(static_cast<size_t>(config_.n_layers));
  int64_t n_recurrent = 0;
  int64_t n_attention = 0;
  for (size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].recurrent = recurrent[i] != 0;
    layers_[i].index = layers_[i].recurrent ? n_recurrent++ : n_attention++;
    layers_[i].n_ff = common.n_ff[i];
    if (layers_[i].recurrent || !read.ok()) continue;
    read.expect(common.n_heads[i] > 0 && common.n_kv_heads[i] > 0, "attention.head_count_kv",
                fmt::format("or head_count is 0 for layer {}, which is an attention layer", i));
  }
}

/// Image positions have three components, text has one: all rotary pairs must take one of the first three.
void Qwen35::check_sections(ConfigReader& read) const {
  constexpr std::string_view kKey = "rope.dimension_sections";
  if (!read.has(kKey)) return;
  std::vector<int64_t> sections = read.integers(kKey, 0, int64_t{1} << 20);
  if (!read.ok()) return;
  if (!read.expect(sections.size() == 3 || sections.size() == 4, kKey,
                   fmt::format("has {} values, expected 3 or 4", sections.size()))) {
    return;
  }
  sections.resize(4, 0);
  const int64_t sum = sections[0] + sections[1] + sections[2] + sections[3];
  if (!read.expect(sum > 0, kKey, "is all zero")) return;
  for (int64_t pair = 0; pair < rope_.n_rot() / 2; ++pair) {
    const int64_t place = pair % sum;
    if (place < 3 * sections[static_cast<size_t>(place % 3)]) continue;
    read.unsupported(kKey, fmt::format("gives rotary pair {} a fourth position component", pair));
    return;
  }
}

StateLayout Qwen35::state_layout() const {
  StateLayout layout;
  for (const Layer& layer : layers_) {
    if (layer.recurrent) {
      layout.delta.push_back({nv_, S_, channels(), conv_kernel_ - 1});
    } else {
      layout.attention.push_back({config_.n_kv_heads, config_.key_dim, config_.value_dim});
    }
  }
  return layout;
}

WorkLimits Qwen35::work_limits(int64_t max_rows, int64_t n_positions) const {
  WorkLimits limits = dense_work_limits(config_, max_rows, n_positions);
  limits.features = std::max(limits.features, value_features());
  limits.delta = {nk_, nv_, S_, DeltaForm::token};
  return limits;
}

int64_t Qwen35::scratch_bytes(int64_t max_rows, int64_t) const {
  Scratch measure;
  carve(max_rows, measure);
  return static_cast<int64_t>(measure.used_bytes());
}

Buffers Qwen35::carve(int64_t n_rows, Scratch& scratch) const {
  Buffers t;
  const ModelConfig& c = config_;
  t.x = scratch.take(c.n_embd, n_rows);
  t.h = scratch.take(c.n_embd, n_rows);
  t.angles = scratch.take(rope_.n_rot(), n_rows);

  Scratch ffn = scratch;
  t.gate = ffn.take(c.n_ff, n_rows);
  t.up = ffn.take(c.n_ff, n_rows);

  t.o = scratch.take(std::max(value_features(), c.n_heads * c.value_dim), n_rows);
  Scratch delta = scratch;
  t.u = delta.take(channels(), n_rows);
  t.z = delta.take(value_features(), n_rows);
  t.alpha = delta.take(nv_, n_rows);
  t.beta = delta.take(nv_, n_rows);

  Scratch attention = scratch;
  t.q_gate = attention.take(2 * c.n_heads * c.key_dim, n_rows);
  t.k = attention.take(c.n_kv_heads * c.key_dim, n_rows);
  t.v = attention.take(c.n_kv_heads * c.value_dim, n_rows);

  for (const Scratch& end : {delta, attention, ffn}) {
    if (end.used_bytes() > scratch.used_bytes()) scratch = end;
  }
  return t;
}

void Qwen35::bind(Binder& in) {
  const auto [d, V] = std::array{config_.n_embd, config_.n_vocab};
  in.matrix("token_embd.weight", d, V, embedding_);
  in.floats("output_norm.weight", {d}, output_norm_);
  in.optional_matrix("output.weight", d, V, head_);
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& w = layers_[i];
    const Binder block = in.block(static_cast<int64_t>(i));
    block.floats("attn_norm.weight", {d}, w.norm);
    if (w.recurrent) {
      bind_delta_net(block, w.delta);
    } else {
      bind_attention(block, w.attn);
    }
    block.floats("post_attention_norm.weight", {d}, w.ffn_norm);
    bind_feed_forward(block, d, w.n_ff, Biases::none, w.ffn);
  }
  note_mtp(in);
}

void Qwen35::bind_delta_net(const Binder& in, DeltaNet& to) const {
  const int64_t d = config_.n_embd;
  in.matrix("attn_qkv.weight", d, channels(), to.qkv);
  in.matrix("attn_gate.weight", d, value_features(), to.z);
  in.matrix("ssm_beta.weight", d, nv_, to.beta, Arithmetic::f32);
  in.matrix("ssm_alpha.weight", d, nv_, to.alpha, Arithmetic::f32);
  in.floats("ssm_conv1d.weight", {conv_kernel_, channels()}, to.conv);
  in.floats(in.spelled("ssm_dt.bias", "ssm_dt"), {nv_}, to.dt_bias);
  in.floats("ssm_a", {nv_}, to.a);
  in.floats("ssm_norm.weight", {S_}, to.norm);
  in.matrix("ssm_out.weight", value_features(), d, to.out);
}

void Qwen35::bind_attention(const Binder& in, Attention& to) const {
  const auto [d, D, H, K] = std::array{config_.n_embd, config_.key_dim, config_.n_heads, config_.n_kv_heads};
  in.matrix("attn_q.weight", d, 2 * H * D, to.q);
  in.matrix("attn_k.weight", d, K * D, to.k);
  in.matrix("attn_v.weight", d, K * D, to.v);
  in.floats("attn_q_norm.weight", {D}, to.q_norm);
  in.floats("attn_k_norm.weight", {D}, to.k_norm);
  in.matrix("attn_output.weight", H * D, d, to.out);
}

void Qwen35::note_mtp(const Binder& in) const {
  int64_t n_tensors = 0;
  bool complete = true;
  for (int64_t i = config_.n_layers; i < config_.n_layers + n_mtp_; ++i) {
    const Binder block = in.block(i);
    n_tensors += block.leave_alone("");
    for (const char* name : {"nextn.eh_proj.weight", "nextn.enorm.weight", "nextn.hnorm.weight"}) {
      complete = complete && block.has(name);
    }
  }
  if (n_mtp_ == 0) return;
  if (n_tensors == 0) {
    in.note("MTP head declared but absent: speculative head off");
  } else if (!complete) {
    in.note(fmt::format("MTP head incomplete ({} tensors): speculative head off", n_tensors));
  } else {
    in.note(fmt::format("MTP head present ({} tensors in blk.{}): not used yet", n_tensors, config_.n_layers));
  }
}

void Qwen35::forward(Backend& op, const Rows& rows, Scratch& scratch, Tensor logits) const {
  const Buffers t = carve(rows.size(), scratch);
  op.rope_angles(rope_, rows, t.angles);
  op.embed(embedding_, rows, t.x);
  for (const Layer& w : layers_) {
    op.rms_norm(t.x, w.norm, config_.norm_eps, t.h);
    if (w.recurrent) {
      delta_net(op, w.delta, w.index, rows, t);
    } else {
      gated_attention(op, w.attn, w.index, rows, t);
    }
    op.add(t.x, t.h);
    op.rms_norm(t.x, w.ffn_norm, config_.norm_eps, t.h);
    feed_forward(op, w.ffn, t.h, t.gate, t.up);
    op.add(t.x, t.h);
  }
  finish_rows(op, config_, t.x, output_norm_, config_.tied ? embedding_ : head_, rows, t.h, logits);
}

void Qwen35::delta_net(Backend& op, const DeltaNet& w, int64_t layer, const Rows& rows, const Buffers& t) const {
  const Product projections[] = {{&w.qkv, t.u, {}}, {&w.z, t.z, {}}, {&w.beta, t.beta, {}}, {&w.alpha, t.alpha, {}}};
  op.linear_many(t.h, projections);
  op.causal_conv_silu(t.u, w.conv, layer, rows);
  op.decay(t.alpha, w.dt_bias, w.a);
  const Tensor q = heads_view(t.u, 0, S_, nk_, S_);                   // {S, nk, R}
  const Tensor k = heads_view(t.u, key_features(), S_, nk_, S_);      // {S, nk, R}
  const Tensor v = heads_view(t.u, 2 * key_features(), S_, nv_, S_);  // {S, nv, R}
  const Tensor o = slice(t.o, 0, value_features());                   // {nv * S, R}
  const DeltaShape shape{nk_, nv_, S_, rows.delta_form};
  op.delta_rule(q, k, v, t.alpha, t.beta, shape, layer, rows, per_head(o, nv_));
  op.norm_silu_gate(per_head(o, nv_), w.norm, config_.norm_eps, per_head(t.z, nv_));
  op.linear(o, w.out, t.h);
}

void Qwen35::gated_attention(Backend& op, const Attention& w, int64_t layer, const Rows& rows, const Buffers& t) const {
  const auto [D, H, K] = std::array{config_.key_dim, config_.n_heads, config_.n_kv_heads};
  const Product projections[] = {{&w.q, t.q_gate, {}}, {&w.k, t.k, {}}, {&w.v, t.v, {}}};
  op.linear_many(t.h, projections);
  const Tensor q = heads_view(t.q_gate, 0, D, H, 2 * D);     // {D, H, R}
  const Tensor gate = heads_view(t.q_gate, D, D, H, 2 * D);  // {D, H, R}
  const Tensor k = per_head(t.k, K);                         // {D, K, R}
  const Tensor v = per_head(t.v, K);                         // {D, K, R}
  const Tensor o = slice(t.o, 0, H * D);                     // {H * D, R}
  op.rms_norm(q, w.q_norm, config_.norm_eps, q);
  op.rms_norm(k, w.k_norm, config_.norm_eps, k);
  op.rope(q, rope_, t.angles);
  op.rope(k, rope_, t.angles);
  op.append(k, v, layer, rows);
  op.attention(q, score_scale(D), layer, rows, per_head(o, H));
  op.sigmoid_gate(per_head(o, H), gate);
  op.linear(o, w.out, t.h);
}

}  // namespace

std::unique_ptr<Model> make_qwen35(const gguf::File& file) { return std::make_unique<Qwen35>(file); }

}  // namespace kz
