// The KV cache and softmax attention.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/key_rows.h"
#include "backend/kv_row.h"
#include "backend/reference.h"
#include "core/error.h"

namespace kz {
namespace {

/// Where the key (value) row of one position of a sequence lies.
std::byte* key_row(const State& state, int64_t position, int64_t layer, int64_t head) {
  const int32_t block = state.blocks()[static_cast<size_t>(position / kKvBlockPositions)];
  return state.pool().keys(block, layer, head) + position % kKvBlockPositions * state.pool().key_row_bytes(layer);
}

std::byte* value_row(const State& state, int64_t position, int64_t layer, int64_t head) {
  const int32_t block = state.blocks()[static_cast<size_t>(position / kKvBlockPositions)];
  return state.pool().values(block, layer, head) + position % kKvBlockPositions * state.pool().value_row_bytes(layer);
}

/// scores[u] = scale * q . key[u] for u < n; returns the largest.
double score_keys(const float* q, int64_t key_dim, double scale, const State& state, int64_t layer, int64_t kv_head,
                  int64_t n, float* key, double* scores) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t u = 0; u < n; ++u) {
    load_key_row(state, layer, kv_head, key_row(state, u, layer, kv_head), key);
    double sum = 0;
    for (int64_t i = 0; i < key_dim; ++i) sum += static_cast<double>(q[i]) * static_cast<double>(key[i]);
    scores[u] = scale * sum;
    largest = std::max(largest, scores[u]);
  }
  return largest;
}

/// out = softmax(scores) . values, over n positions; `largest` is the largest score.
void mix_values(const double* scores, double largest, const State& state, int64_t layer, int64_t kv_head, int64_t n,
                float* value, double* sum, float* out, int64_t value_dim) {
  double total = 0;
  std::fill(sum, sum + value_dim, 0.0);
  for (int64_t u = 0; u < n; ++u) {
    const double weight = std::exp(scores[u] - largest);
    total += weight;
    load_kv_row(state.pool().value_type(), value_row(state, u, layer, kv_head), value, value_dim);
    for (int64_t i = 0; i < value_dim; ++i) sum[i] += weight * static_cast<double>(value[i]);
  }
  for (int64_t i = 0; i < value_dim; ++i) out[i] = static_cast<float>(sum[i] / total);
}

}  // namespace

void ReferenceBackend::append(Tensor k, Tensor v, int64_t layer, const Rows& rows) {
  count(kAppend);
  KZ_CHECK(k.ne[2] == rows.size() && v.ne[2] == rows.size());
  for (const Span& span : rows.spans) {
    const KvPool& kv = span.state->pool();
    const AttentionLayout& layout = kv.layout(layer);
    KZ_CHECK(span.position == span.state->position() && span.n_rows <= span.state->pending());
    KZ_CHECK(k.ne[0] == layout.key_dim && v.ne[0] == layout.value_dim);
    KZ_CHECK(k.ne[1] == layout.n_kv_heads && v.ne[1] == layout.n_kv_heads);
    take_key_centres(k, layer, span);
    for (int64_t r = 0; r < span.n_rows; ++r) {
      const int64_t position = span.position + r, row = span.first_row + r;
      for (int64_t head = 0; head < layout.n_kv_heads; ++head) {
        store_key_row(*span.state, layer, head, k.f32(head, row), key_row(*span.state, position, layer, head));
        store_kv_row(kv.value_type(), v.f32(head, row), value_row(*span.state, position, layer, head),
                     layout.value_dim);
      }
    }
  }
}

void ReferenceBackend::attention(Tensor q, float scale, int64_t layer, const Rows& rows, Tensor out) {
  count(kAttention);
  KZ_CHECK(q.ne[2] == rows.size() && out.ne[2] == rows.size() && out.ne[1] == q.ne[1]);
  for (const Span& span : rows.spans) {
    const State& state = *span.state;
    const AttentionLayout& layout = state.pool().layout(layer);
    const int64_t n_heads = q.ne[1], key_dim = layout.key_dim, value_dim = layout.value_dim;
    KZ_CHECK(n_heads % layout.n_kv_heads == 0 && q.ne[0] == key_dim && out.ne[0] == value_dim);
    pool_.parallel_for(n_heads, 1, [&](int64_t begin, int64_t end, int worker) {
      float* loaded = floats(worker, std::max(key_dim, value_dim));
      double* scores = doubles(worker, span.position + span.n_rows + value_dim);
      for (int64_t h = begin; h < end; ++h) {
        const int64_t kv_head = h / (n_heads / layout.n_kv_heads);
        for (int64_t r = 0; r < span.n_rows; ++r) {
          const int64_t row = span.first_row + r, n = span.position + r + 1;  // sees itself
          const double largest =
              score_keys(q.f32(h, row), key_dim, static_cast<double>(scale), state, layer, kv_head, n, loaded, scores);
          mix_values(scores, largest, state, layer, kv_head, n, loaded, scores + n, out.f32(h, row), value_dim);
        }
      }
    });
  }
}

}  // namespace kz
