// Causal convolution and the gated delta rule (Qwen3.5's linear attention), both forms.
#include <algorithm>
#include <cmath>

#include "backend/reference.h"
#include "core/error.h"

namespace kz {
namespace {

/// Tokens that the chunked form takes at a time.
constexpr int64_t kChunk = 64;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// to = x / sqrt(sum(x^2) + 1e-6).
void normalise(const float* x, int64_t n, double* to) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const double scale = 1.0 / std::sqrt(sum + 1e-6);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<double>(x[i]) * scale;
}

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

double dot(const float* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

/// One value head of one span: where its inputs and outputs are.
struct Head {
  const Tensor &q, &k, &v, &g, &beta, &out;
  int64_t key_head, value_head, size;
  float* state;  ///< M [value index][key index]

  double decay_log(int64_t row) const { return static_cast<double>(g.f32(row)[value_head]); }
  double write_strength(int64_t row) const { return sigmoid(static_cast<double>(beta.f32(row)[value_head])); }
};

/// One token: M <- e^g M; delta = beta (v - M k); M <- M + delta k^T; out = M q / sqrt(S). The state is rounded to
/// float after every token, so a span gives the same bits however it is cut.
void token_step(const Head& head, int64_t row, double* q, double* k) {
  const int64_t size = head.size;
  normalise(head.q.f32(head.key_head, row), size, q);
  normalise(head.k.f32(head.key_head, row), size, k);
  const double decay = std::exp(head.decay_log(row));
  const double strength = head.write_strength(row);
  const double scale = 1.0 / std::sqrt(static_cast<double>(size));
  const float* v = head.v.f32(head.value_head, row);
  float* out = head.out.f32(head.value_head, row);
  for (int64_t j = 0; j < size; ++j) {
    float* m = head.state + j * size;
    const double delta = strength * (static_cast<double>(v[j]) - decay * dot(m, k, size));
    double read = 0;
    for (int64_t i = 0; i < size; ++i) {
      const double updated = decay * static_cast<double>(m[i]) + delta * k[i];
      m[i] = static_cast<float>(updated);
      read += updated * q[i];
    }
    out[j] = static_cast<float>(scale * read);
  }
}

/// Work memory of the chunked form: normalised q and k, the solved v', and the running sum of g.
struct ChunkWork {
  double *q, *k, *v, *sum_g;
  ChunkWork(double* at, int64_t size) : q(at), k(q + kChunk * size), v(k + kChunk * size), sum_g(v + kChunk * size) {}
};

/// v'_i = beta_i (v_i - e^(G_i) M k_i - sum over j < i of (k_i . k_j) e^(G_i - G_j) v'_j): the forward substitution of
/// (I + A) V' = diag(beta) (V - diag(e^G) K M). Only differences G_i - G_j <= 0 are ever raised to e.
void solve_values(const Head& head, int64_t first_row, int64_t n, const ChunkWork& work) {
  const int64_t size = head.size;
  for (int64_t i = 0; i < n; ++i) {
    const double* k = work.k + i * size;
    const double decay = std::exp(work.sum_g[i]);
    const double strength = head.write_strength(first_row + i);
    const float* v = head.v.f32(head.value_head, first_row + i);
    double* solved = work.v + i * size;
    for (int64_t c = 0; c < size; ++c) {
      solved[c] = static_cast<double>(v[c]) - decay * dot(head.state + c * size, k, size);
    }
    for (int64_t j = 0; j < i; ++j) {
      const double overlap = dot(k, work.k + j * size, size) * std::exp(work.sum_g[i] - work.sum_g[j]);
      for (int64_t c = 0; c < size; ++c) solved[c] -= overlap * work.v[j * size + c];
    }
    for (int64_t c = 0; c < size; ++c) solved[c] *= strength;
  }
}

/// out_i = (e^(G_i) M q_i + sum over j <= i of (q_i . k_j) e^(G_i - G_j) v'_j) / sqrt(S).
void write_outputs(const Head& head, int64_t first_row, int64_t n, const ChunkWork& work) {
  const int64_t size = head.size;
  const double scale = 1.0 / std::sqrt(static_cast<double>(size));
  for (int64_t i = 0; i < n; ++i) {
    const double* q = work.q + i * size;
    double overlap[kChunk];
    for (int64_t j = 0; j <= i; ++j) {
      overlap[j] = dot(q, work.k + j * size, size) * std::exp(work.sum_g[i] - work.sum_g[j]);
    }
    const double decay = std::exp(work.sum_g[i]);
    float* out = head.out.f32(head.value_head, first_row + i);
    for (int64_t c = 0; c < size; ++c) {
      double sum = decay * dot(head.state + c * size, q, size);
      for (int64_t j = 0; j <= i; ++j) sum += overlap[j] * work.v[j * size + c];
      out[c] = static_cast<float>(scale * sum);
    }
  }
}

/// M <- e^(G_n) M + sum over j of e^(G_n - G_j) v'_j k_j^T.
void advance_state(const Head& head, int64_t n, const ChunkWork& work) {
  const int64_t size = head.size;
  const double total = work.sum_g[n - 1], total_decay = std::exp(total);
  double decay[kChunk];
  for (int64_t j = 0; j < n; ++j) decay[j] = std::exp(total - work.sum_g[j]);
  for (int64_t c = 0; c < size; ++c) {
    float* m = head.state + c * size;
    for (int64_t i = 0; i < size; ++i) {
      double sum = total_decay * static_cast<double>(m[i]);
      for (int64_t j = 0; j < n; ++j) sum += decay[j] * work.v[j * size + c] * work.k[j * size + i];
      m[i] = static_cast<float>(sum);
    }
  }
}

void chunk_step(const Head& head, int64_t first_row, int64_t n, const ChunkWork& work) {
  double sum_g = 0;
  for (int64_t i = 0; i < n; ++i) {
    normalise(head.q.f32(head.key_head, first_row + i), head.size, work.q + i * head.size);
    normalise(head.k.f32(head.key_head, first_row + i), head.size, work.k + i * head.size);
    sum_g += head.decay_log(first_row + i);
    work.sum_g[i] = sum_g;
  }
  solve_values(head, first_row, n, work);
  write_outputs(head, first_row, n, work);
  advance_state(head, n, work);
}

void walk_span(const Head& head, const Span& span, DeltaForm form, double* work) {
  if (form == DeltaForm::token) {
    for (int64_t r = 0; r < span.n_rows; ++r) token_step(head, span.first_row + r, work, work + head.size);
    return;
  }
  const ChunkWork chunk(work, head.size);
  for (int64_t r = 0; r < span.n_rows; r += kChunk) {
    chunk_step(head, span.first_row + r, std::min(kChunk, span.n_rows - r), chunk);
  }
}

}  // namespace

int64_t reference_delta_doubles(const DeltaShape& shape) {
  return shape.state_size == 0 ? 0 : kChunk * (3 * shape.state_size + 1);
}

void ReferenceBackend::causal_conv_silu(Tensor x, Tensor w, int64_t layer, const Rows& rows) {
  count(kCausalConvSilu);
  const int64_t channels = x.ne[0], n_past = w.ne[0] - 1;
  KZ_CHECK(w.ne[1] == channels && n_past >= 1 && x.ne[1] == rows.size());
  for (const Span& span : rows.spans) {
    float* past = span.state->conv_history(layer);  // [n_past][channels], oldest first
    for (int64_t r = 0; r < span.n_rows; ++r) {
      float* row = x.f32(span.first_row + r);
      for (int64_t c = 0; c < channels; ++c) {
        const float* taps = w.f32(c);
        const float input = row[c];
        double sum = static_cast<double>(taps[n_past]) * static_cast<double>(input);
        for (int64_t m = 0; m < n_past; ++m) {
          sum += static_cast<double>(taps[m]) * static_cast<double>(past[m * channels + c]);
        }
        for (int64_t m = 0; m + 1 < n_past; ++m) past[m * channels + c] = past[(m + 1) * channels + c];
        past[(n_past - 1) * channels + c] = input;
        row[c] = static_cast<float>(sum * sigmoid(sum));
      }
    }
  }
}

void ReferenceBackend::delta_rule(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, const DeltaShape& shape,
                                  int64_t layer, const Rows& rows, Tensor out) {
  count(kDeltaRule);
  const int64_t size = shape.state_size, n_heads = shape.n_value_heads;
  KZ_CHECK(q.ne[0] == size && q.ne[1] == shape.n_key_heads && q.ne[2] == rows.size() && k.ne == q.ne);
  KZ_CHECK(v.ne[0] == size && v.ne[1] == n_heads && v.ne[2] == rows.size() && out.ne == v.ne);
  KZ_CHECK(g.ne[0] == n_heads && beta.ne == g.ne && n_heads % shape.n_key_heads == 0);
  for (const Span& span : rows.spans) {
    float* states = span.state->delta_state(layer);
    pool_.parallel_for(n_heads, 1, [&](int64_t begin, int64_t end, int worker) {
      for (int64_t h = begin; h < end; ++h) {
        const Head head{q, k, v, g, beta, out, h % shape.n_key_heads, h, size, states + h * size * size};
        walk_span(head, span, shape.form, doubles(worker, reference_delta_doubles(shape)));
      }
    });
  }
}

}  // namespace kz
