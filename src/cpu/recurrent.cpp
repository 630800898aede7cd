// Causal convolution and the gated delta rule (Qwen3.5's linear attention), both forms.
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "cpu/backend_impl.h"

namespace kz {
namespace {

int64_t float_stride(const Tensor& x, size_t dim) { return x.stride[dim] / static_cast<int64_t>(sizeof(float)); }

/// Channels [first, first + n) of one span of a convolution. Rows go from last to first, so that the inputs of earlier
/// rows are still there; the inputs that the state keeps are saved before.
void convolve(const Kernels& kernels, const ConvWork& work, const Tensor& x, const Tensor& w, const Span& span,
              float* past, int64_t first, int64_t n) {
  const int64_t channels = x.ne[0], n_taps = w.ne[0], n_past = n_taps - 1;
  kernels.transpose_taps(w.f32(first), float_stride(w, 1), n_taps, n, work.weights);
  const auto input = [&](int64_t r) {  // row r of the span; negative: what the state remembers
    return r < 0 ? past + (n_past + r) * channels + first : x.f32(span.first_row + r) + first;
  };
  const size_t row_bytes = static_cast<size_t>(n) * sizeof(float);
  for (int64_t m = 0; m < n_past; ++m) std::memcpy(work.history + m * n, input(span.n_rows - n_past + m), row_bytes);
  for (int64_t r = span.n_rows - 1; r >= 0; --r) {
    std::array<const float*, kMostTaps> inputs{};
    for (int64_t tap = 0; tap < n_taps; ++tap) inputs[static_cast<size_t>(tap)] = input(r - n_past + tap);
    kernels.conv_silu({inputs.data(), work.weights, n_taps, n, x.f32(span.first_row + r) + first});
  }
  for (int64_t m = 0; m < n_past; ++m) std::memcpy(past + m * channels + first, work.history + m * n, row_bytes);
}

/// One value head of one span.
struct DeltaHead {
  const Tensor &v, &g, &out;
  const DeltaInputs& inputs;
  const DeltaShape& shape;
  const Span& span;
  int64_t head;
  float* state;  ///< M [value index][key index]

  /// Row r of the span among the rows of its key head.
  int64_t key_row(int64_t r) const { return head % shape.n_key_heads * inputs.n_rows + span.first_row + r; }
  int64_t qk_stride() const { return shape.state_size; }
  int64_t qk_offset(int64_t r) const { return key_row(r) * shape.state_size; }
  int64_t gate(int64_t r) const { return (span.first_row + r) * shape.n_value_heads + head; }
};

/// Values [first, first + n) of a head, all tokens of the span.
void walk_tokens(const Kernels& kernels, const DeltaHead& h, int64_t first, int64_t n) {
  const int64_t size = h.shape.state_size;
  DeltaArgs a;
  a.state = h.state + first * size;
  a.n_values = n;
  a.size = size;
  a.n_tokens = h.span.n_rows;
  a.q = h.inputs.q + h.qk_offset(0);
  a.k = h.inputs.k + h.qk_offset(0);
  a.qk_stride = h.qk_stride();
  a.v = h.v.f32(h.head, h.span.first_row) + first;
  a.v_stride = float_stride(h.v, 2);
  a.key_query = h.inputs.key_query + h.key_row(0);
  a.key_query_stride = 1;
  a.decay = h.inputs.decay + h.gate(0);
  a.strength = h.inputs.strength + h.gate(0);
  a.gate_stride = h.shape.n_value_heads;
  a.out_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(size)));
  a.out = h.out.f32(h.head, h.span.first_row) + first;
  a.out_stride = float_stride(h.out, 2);
  kernels.delta(a);
}

/// The chunked form of a head: tokens [first, first + n) of the span, n <= kDeltaChunk. G_i, the running sum of g, is
/// kept in double and only differences G_i - G_j <= 0 are raised to e (spec: states decay by e^-316 in one token).
class DeltaChunk {
 public:
  DeltaChunk(const Kernels& kernels, const ChunkWork& work, const DeltaHead& head, int64_t first, int64_t n)
      : kernels_(kernels), work_(work), h_(head), first_(first), n_(n), size_(head.shape.state_size) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      sum += static_cast<double>(head.g.f32(head.span.first_row + first + i)[head.head]);
      sum_g_[static_cast<size_t>(i)] = sum;
    }
  }

  void run() const {
    const float *k = h_.inputs.k + h_.qk_offset(first_), *q = h_.inputs.q + h_.qk_offset(first_);
    multiply(h_.state, size_, size_, k, work_.read_k, size_);
    multiply(h_.state, size_, size_, q, work_.read_q, size_);
    multiply(k, h_.qk_stride(), n_, k, work_.overlap_k, kDeltaChunk);
    multiply(k, h_.qk_stride(), n_, q, work_.overlap_q, kDeltaChunk);
    for (int64_t i = 0; i < n_; ++i) solve(i);
    for (int64_t i = 0; i < n_; ++i) write(i);
    advance(k);
  }

 private:
  double sum_g(int64_t i) const { return sum_g_[static_cast<size_t>(i)]; }
  float left(int64_t i, int64_t j) const { return static_cast<float>(std::exp(sum_g(i) - sum_g(j))); }
  float left(int64_t i) const { return static_cast<float>(std::exp(sum_g(i))); }

  void multiply(const float* rows, int64_t stride, int64_t n_rows, const float* x, float* out,
                int64_t out_stride) const {
    ProductArgs a;
    a.weights = rows;
    a.weight_stride = stride;
    a.n_weights = n_rows;
    a.x = x;
    a.x_stride = h_.qk_stride();
    a.n_rows = n_;
    a.k = size_;
    a.out = out;
    a.out_stride = out_stride;
    a.lanes = work_.lanes;
    kernels_.product(a);
  }

  /// out += sum over j < n of weights[j] * solved v'_j.
  void add_solved(const float* weights, int64_t n, float* out) const {
    kernels_.weighted_sum({weights, kDeltaChunk, work_.solved, size_, n, size_, out, size_, 1});
  }

  /// v'_i = beta_i (v_i - e^(G_i) M k_i - sum over j < i of (k_i . k_j) e^(G_i - G_j) v'_j).
  void solve(int64_t i) const {
    const float* v = h_.v.f32(h_.head, h_.span.first_row + first_ + i);
    float *solved = work_.solved + i * size_, *overlap = work_.overlap_k + i * kDeltaChunk;
    const float decay = left(i), strength = h_.inputs.strength[h_.gate(first_ + i)];
    for (int64_t c = 0; c < size_; ++c) solved[c] = v[c] - decay * work_.read_k[i * size_ + c];
    for (int64_t j = 0; j < i; ++j) overlap[j] = -overlap[j] * left(i, j);
    add_solved(overlap, i, solved);
    kernels_.scale(solved, strength, nullptr, solved, size_);
  }

  /// out_i = (e^(G_i) M q_i + sum over j <= i of (q_i . k_j) e^(G_i - G_j) v'_j) / sqrt(S).
  void write(int64_t i) const {
    float *out = work_.out + i * size_, *overlap = work_.overlap_q + i * kDeltaChunk;
    kernels_.scale(work_.read_q + i * size_, left(i), nullptr, out, size_);
    for (int64_t j = 0; j <= i; ++j) overlap[j] *= left(i, j);
    add_solved(overlap, i + 1, out);
    const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(size_)));
    kernels_.scale(out, scale, nullptr, h_.out.f32(h_.head, h_.span.first_row + first_ + i), size_);
  }

  /// M <- e^(G_n) M + sum over j of e^(G_n - G_j) v'_j k_j^T.
  void advance(const float* k) const {
    for (int64_t j = 0; j < n_; ++j) {
      const float decay = left(n_ - 1, j);
      for (int64_t c = 0; c < size_; ++c) work_.transposed[c * kDeltaChunk + j] = decay * work_.solved[j * size_ + c];
    }
    kernels_.scale(h_.state, left(n_ - 1), nullptr, h_.state, size_ * size_);
    kernels_.weighted_sum({work_.transposed, kDeltaChunk, k, h_.qk_stride(), n_, size_, h_.state, size_, size_});
  }

  const Kernels& kernels_;
  const ChunkWork& work_;
  const DeltaHead& h_;
  int64_t first_, n_, size_;
  std::array<double, kDeltaChunk> sum_g_{};
};

/// to = x / sqrt(sum(x^2) + 1e-6).
void normalise(const Kernels& kernels, const float* x, float* to, int64_t n) {
  kernels.scale(x, static_cast<float>(1.0 / std::sqrt(kernels.sum_of_squares(x, n) + 1e-6)), nullptr, to, n);
}

}  // namespace

void CpuBackend::causal_conv_silu(Tensor x, Tensor w, int64_t layer, const Rows& rows) {
  const VerbTimer timer = count(kCausalConvSilu);
  KZ_CHECK(w.ne[1] == x.ne[0] && w.ne[0] >= 2 && w.ne[0] <= kMostTaps && x.ne[1] == rows.size());
  const int64_t n_pieces = (x.ne[0] + kConvChannels - 1) / kConvChannels;
  const int64_t n_spans = static_cast<int64_t>(rows.spans.size());
  const int64_t grain = rows.size() > 4 * n_spans ? 1 : 4;
  pool_.parallel_for(n_spans * n_pieces, grain, [&](int64_t begin, int64_t end, int worker) {
    Scratch scratch = workspace_.worker(worker);
    const ConvWork work(scratch);
    for (int64_t i = begin; i < end; ++i) {
      const Span& span = rows.spans[static_cast<size_t>(i / n_pieces)];
      const int64_t first = i % n_pieces * kConvChannels;
      convolve(kernels_, work, x, w, span, span.state->conv_history(layer), first,
               std::min(kConvChannels, x.ne[0] - first));
    }
  });
}

void CpuBackend::delta_rule(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, const DeltaShape& shape, int64_t layer,
                            const Rows& rows, Tensor out) {
  const bool chunked = shape.form == DeltaForm::chunked;
  const VerbTimer timer = count(chunked ? kDeltaChunked : kDeltaToken, state_bytes(rows, shape));
  const int64_t size = shape.state_size, n_heads = shape.n_value_heads, n_key_heads = shape.n_key_heads;
  KZ_CHECK(q.ne[0] == size && q.ne[1] == n_key_heads && q.ne[2] == rows.size() && k.ne == q.ne);
  KZ_CHECK(v.ne[0] == size && v.ne[1] == n_heads && v.ne[2] == rows.size() && out.ne == v.ne);
  KZ_CHECK(g.ne[0] == n_heads && beta.ne == g.ne && n_heads % n_key_heads == 0);
  Scratch shared = workspace_.shared();
  const DeltaInputs inputs(shared, shape, rows.size());
  pool_.parallel_for(rows.size(), 8, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t h = 0; h < n_key_heads; ++h) {
        const int64_t at = h * rows.size() + r;
        float *query = inputs.q + at * size, *key = inputs.k + at * size;
        normalise(kernels_, q.f32(h, r), query, size);
        normalise(kernels_, k.f32(h, r), key, size);
        inputs.key_query[at] = kernels_.dot(key, query, size);
      }
      kernels_.exponential(g.f32(r), inputs.decay + r * n_heads, n_heads);
      kernels_.sigmoid(beta.f32(r), inputs.strength + r * n_heads, n_heads);
    }
  });
  const int64_t n_spans = static_cast<int64_t>(rows.spans.size());
  const int64_t values = chunked ? size : std::min<int64_t>(size, 32);  // value rows of one task: 16 KB at S = 128
  const int64_t tasks_per_head = (size + values - 1) / values;
  const int64_t grain = chunked || rows.size() > 4 * n_spans ? 1 : tasks_per_head;
  pool_.parallel_for(n_spans * n_heads * tasks_per_head, grain, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t i = begin; i < end; ++i) {
      const Span& span = rows.spans[static_cast<size_t>(i / (n_heads * tasks_per_head))];
      const int64_t head = i / tasks_per_head % n_heads, first = i % tasks_per_head * values;
      const DeltaHead h{v, g, out, inputs, shape, span, head, span.state->delta_state(layer) + head * size * size};
      if (!chunked) {
        walk_tokens(kernels_, h, first, std::min(values, size - first));
        continue;
      }
      Scratch scratch = workspace_.worker(worker);
      const ChunkWork work(scratch, size);
      for (int64_t r = 0; r < span.n_rows; r += kDeltaChunk) {
        DeltaChunk(kernels_, work, h, r, std::min(kDeltaChunk, span.n_rows - r)).run();
      }
    }
  });
}

}  // namespace kz
