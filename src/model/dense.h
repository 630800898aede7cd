// What the architectures share: the feed-forward network, the work memory of a dense forward, the arithmetic of sizes.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "model/binder.h"
#include "model/config_reader.h"
#include "model/model.h"

namespace kz {

/// W_down(SiLU(W_gate x) * W_up x), with biases where a file has them.
struct FeedForward {
  Weight gate, up, down;
  Tensor gate_bias, up_bias, down_bias;
};

/// Softmax attention of one layer; what an architecture does not have stays empty.
struct Attention {
  Weight q, k, v, out;
  Tensor q_bias, k_bias, v_bias, out_bias;
  Tensor q_norm, k_norm;
};

struct DenseLayer {
  Tensor attn_norm;
  Attention attn;
  Tensor ffn_norm;
  FeedForward ffn;
};

/// The activations of one dense forward of R rows. Attention and feed-forward network share their place.
struct DenseBuffers {
  Tensor x;         ///< {d, R} the residual stream
  Tensor h;         ///< {d, R} normed input of a block, then its output
  Tensor angles;    ///< {n_rot, R}
  Tensor q;         ///< {H * Dk, R}
  Tensor k;         ///< {K * Dk, R}
  Tensor v;         ///< {K * Dv, R}
  Tensor o;         ///< {H * Dv, R}
  Tensor gate, up;  ///< {F, R}
};
DenseBuffers carve_dense(const ModelConfig& config, int64_t n_rot, int64_t n_rows, Scratch& scratch);

/// The same with a measuring scratch: bytes that carve_dense() takes.
int64_t dense_scratch_bytes(const ModelConfig& config, int64_t n_rot, int64_t n_rows);

StateLayout dense_state_layout(const ModelConfig& config);
WorkLimits dense_work_limits(const ModelConfig& config, int64_t max_rows, int64_t n_positions);

/// Which biases a file of this architecture may have.
enum class Biases { none, optional, required };

/// attn_q, attn_k, attn_v (or one attn_qkv with their rows in this order) and their biases.
void bind_qkv(const Binder& block, const ModelConfig& config, Biases biases, Attention& to);
void bind_feed_forward(const Binder& block, int64_t n_embd, int64_t n_ff, Biases biases, FeedForward& to);

/// h = W_down(SiLU(W_gate h) * W_up h) on h {d, R}; gate and up are work memory {>= F, R}.
void feed_forward(Backend& op, const FeedForward& w, Tensor h, Tensor gate, Tensor up);

/// logits of the rows that want them, if there are any; h {d, R} is work memory.
void finish_rows(Backend& op, const ModelConfig& config, Tensor x, Tensor norm, const Weight& head, const Rows& rows,
                 Tensor h, Tensor logits);

/// {heads * D, R} seen as {D, heads, R}.
Tensor per_head(const Tensor& x, int64_t heads);

/// 1 / sqrt(D): the scale of attention scores.
float score_scale(int64_t key_dim);

}  // namespace kz
