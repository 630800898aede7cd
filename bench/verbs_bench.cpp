// What a token needs beside its products, on the cpu backend with the shapes of Qwen3-4B and Qwen3.5-4B: attention, the
// delta rule, convolution, norms, gates, rotation.
//
// usage: build/release/bin/verbs_bench --benchmark_repetitions=5
//
// One iteration is one layer. Decode shapes walk over as many layers as make caches useless (kColdBytes); `read` is
// the rate at which KV rows (or state: read and written, counted twice) are used, to compare with the read bandwidth.
// `macs` counts the multiply-adds of visible positions.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "cpu/cpu_backend.h"

namespace kz {
namespace {

constexpr int64_t kColdBytes = int64_t{1} << 30;
const auto kRate = benchmark::Counter::kIsIterationInvariantRate;
const auto kThousands = benchmark::Counter::kIs1000;

std::vector<float> random_floats(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& value : x) value = static_cast<float>(random() % 4096) / 2048.0f - 1.0f;
  return x;
}

Tensor heads_of(std::vector<float>& x, int64_t dim, int64_t heads, int64_t rows) {
  return heads_view(matrix_f32(x.data(), dim * heads, rows), 0, dim, heads, dim);
}

void label(benchmark::State& state, const Backend& backend) {
  state.SetLabel(std::string(backend.kernels()) + ", " + std::to_string(backend.n_threads()) + " threads");
}

struct AttentionShape {
  int64_t heads, kv_heads, dim;
};
constexpr AttentionShape kAttentionShapes[] = {{32, 8, 128}, {16, 4, 256}};  // Qwen3-4B, Qwen3.5-4B

struct OneSpan {
  Span span;
  std::vector<int32_t> tokens;
  OneSpan(State& state, int64_t n_rows) : span{&state, state.position(), 0, n_rows} {
    tokens.resize(static_cast<size_t>(n_rows));
  }
  Rows rows() const { return {{&span, 1}, tokens, {}, DeltaForm::token}; }
};

/// Fills the first layer through the backend and copies its rows to the others.
void fill_cache(Backend& backend, State& state, const AttentionShape& shape, int64_t n_layers, int64_t depth) {
  std::vector<float> k = random_floats(shape.dim * shape.kv_heads * kKvBlockPositions, 1), v = k;
  while (state.position() < depth) {
    state.begin(kKvBlockPositions);
    const OneSpan span(state, kKvBlockPositions);
    const Tensor rows = heads_of(k, shape.dim, shape.kv_heads, kKvBlockPositions);
    backend.append(rows, heads_of(v, shape.dim, shape.kv_heads, kKvBlockPositions), 0, span.rows());
    const KvPool& pool = state.pool();
    const int32_t block = state.blocks().back();
    const size_t bytes = static_cast<size_t>(kKvBlockPositions * pool.key_row_bytes(0));
    for (int64_t layer = 1; layer < n_layers; ++layer) {
      for (int64_t head = 0; head < shape.kv_heads; ++head) {
        std::memcpy(pool.keys(block, layer, head), pool.keys(block, 0, head), bytes);
        std::memcpy(pool.values(block, layer, head), pool.values(block, 0, head), bytes);
      }
    }
    state.commit(kKvBlockPositions);
  }
}

void attention(benchmark::State& bench) {
  const AttentionShape& shape = kAttentionShapes[bench.range(0)];
  const int64_t depth = bench.range(1), n_rows = bench.range(2);
  const DType type = bench.range(3) == 16 ? DType::f16 : DType::q8_0;
  const int64_t kv_bytes = 2 * shape.kv_heads * row_bytes(type, shape.dim) * (depth + n_rows);
  const int64_t n_blocks = (depth + n_rows) / kKvBlockPositions + 1;
  const int64_t block_bytes = 2 * shape.kv_heads * row_bytes(type, shape.dim) * kKvBlockPositions;
  const int64_t n_layers = n_rows > 1 ? 2 : kColdBytes / (n_blocks * block_bytes) + 1;
  const std::unique_ptr<Backend> backend = make_cpu_backend({});
  WorkLimits limits;
  limits.rows = std::max(n_rows, kKvBlockPositions);
  limits.heads = shape.heads;
  limits.head_dim = shape.dim;
  limits.positions = depth + n_rows;
  backend->reserve(limits);
  StateLayout layout;
  layout.attention.assign(static_cast<size_t>(n_layers), {shape.kv_heads, shape.dim, shape.dim});
  State state(layout, std::make_shared<KvPool>(layout, n_blocks, type, type), n_blocks * kKvBlockPositions);
  fill_cache(*backend, state, shape, n_layers, depth);
  state.begin(n_rows);
  const OneSpan span(state, n_rows);
  std::vector<float> q = random_floats(shape.dim * shape.heads * n_rows, 2), out = q;
  for (int64_t layer = 0; layer < n_layers; ++layer) {
    const Tensor rows = heads_of(q, shape.dim, shape.kv_heads, n_rows);
    backend->append(rows, rows, layer, span.rows());
  }
  int64_t layer = 0;
  for (auto _ : bench) {
    backend->attention(heads_of(q, shape.dim, shape.heads, n_rows), 0.1f, layer, span.rows(),
                       heads_of(out, shape.dim, shape.heads, n_rows));
    layer = (layer + 1) % n_layers;
  }
  label(bench, *backend);
  bench.counters["read"] = benchmark::Counter(static_cast<double>(kv_bytes), kRate, kThousands);
  const double macs = static_cast<double>(2 * shape.heads * shape.dim) *
                      (static_cast<double>(n_rows * depth) + static_cast<double>(n_rows * (n_rows + 1)) / 2);
  bench.counters["macs"] = benchmark::Counter(macs, kRate, kThousands);
}

/// Decode at two depths, a prompt of 512 tokens at its begin and behind 4096 others.
void attention_args(benchmark::internal::Benchmark* bench) {
  for (const int64_t shape : {0, 1}) {
    for (const int64_t kv : {16, 8}) {
      for (const auto& [depth, rows] : {std::pair{256, 1}, {4096, 1}, {0, 512}, {4096, 512}}) {
        bench->Args({shape, depth, rows, kv});
      }
    }
  }
}
BENCHMARK(attention)
    ->Apply(attention_args)
    ->ArgNames({"shape", "depth", "rows", "kv"})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void append(benchmark::State& bench) {
  const AttentionShape& shape = kAttentionShapes[bench.range(0)];
  const int64_t n_rows = bench.range(1);
  const DType type = bench.range(2) == 16 ? DType::f16 : DType::q8_0;
  const std::unique_ptr<Backend> backend = make_cpu_backend({});
  const StateLayout layout{{{shape.kv_heads, shape.dim, shape.dim}}, {}};
  State state(layout, std::make_shared<KvPool>(layout, 4, type, type), 1024);
  state.begin(n_rows);
  const OneSpan span(state, n_rows);
  std::vector<float> k = random_floats(shape.dim * shape.kv_heads * n_rows, 2);
  const Tensor rows = heads_of(k, shape.dim, shape.kv_heads, n_rows);
  for (auto _ : bench) backend->append(rows, rows, 0, span.rows());
  label(bench, *backend);
}
BENCHMARK(append)
    ->ArgsProduct({{0, 1}, {1, 512}, {16, 8}})
    ->ArgNames({"shape", "rows", "kv"})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

constexpr int64_t kStateSize = 128, kKeyHeads = 16, kValueHeads = 32, kChannels = 8192;

/// A sequence whose delta layers do not fit into caches.
struct DeltaLayers {
  StateLayout layout;
  std::unique_ptr<State> state;
  int64_t n_layers;
  explicit DeltaLayers(int64_t n_rows) : n_layers(n_rows > 1 ? 4 : 256) {
    layout.delta.assign(static_cast<size_t>(n_layers), {kValueHeads, kStateSize, kChannels, 3});
    state = std::make_unique<State>(layout, std::make_shared<KvPool>(layout, 4, DType::f16, DType::f16), 1024);
    state->begin(n_rows);
    for (int64_t layer = 0; layer < n_layers; ++layer) {  // not on the page of zeros
      std::memset(state->delta_state(layer), 0, static_cast<size_t>(kValueHeads * kStateSize * kStateSize) * 4);
    }
  }
};

WorkLimits delta_limits(int64_t n_rows) {
  WorkLimits limits;
  limits.rows = n_rows;
  limits.delta = {kKeyHeads, kValueHeads, kStateSize, DeltaForm::token};
  return limits;
}

void delta_rule(benchmark::State& bench) {
  const int64_t n_rows = bench.range(0);
  const std::unique_ptr<Backend> backend = make_cpu_backend({});
  backend->reserve(delta_limits(n_rows));
  const DeltaLayers layers(n_rows);
  const OneSpan span(*layers.state, n_rows);
  std::vector<float> u = random_floats(kChannels * n_rows, 3),
                     out(static_cast<size_t>(kValueHeads * kStateSize * n_rows));
  std::vector<float> g(static_cast<size_t>(kValueHeads * n_rows), -0.05f),
      beta = random_floats(kValueHeads * n_rows, 4);
  const Tensor x = matrix_f32(u.data(), kChannels, n_rows);
  const DeltaShape shape{kKeyHeads, kValueHeads, kStateSize, bench.range(1) ? DeltaForm::chunked : DeltaForm::token};
  int64_t layer = 0;
  for (auto _ : bench) {
    backend->delta_rule(heads_view(x, 0, kStateSize, kKeyHeads, kStateSize),
                        heads_view(x, kKeyHeads * kStateSize, kStateSize, kKeyHeads, kStateSize),
                        heads_view(x, 2 * kKeyHeads * kStateSize, kStateSize, kValueHeads, kStateSize),
                        matrix_f32(g.data(), kValueHeads, n_rows), matrix_f32(beta.data(), kValueHeads, n_rows), shape,
                        layer, span.rows(), heads_of(out, kStateSize, kValueHeads, n_rows));
    layer = (layer + 1) % layers.n_layers;
  }
  label(bench, *backend);
  const double state_bytes = 2.0 * kValueHeads * kStateSize * kStateSize * sizeof(float);
  bench.counters["read"] = benchmark::Counter(state_bytes, kRate, kThousands);
  const double macs = 3.5 * kValueHeads * kStateSize * kStateSize * static_cast<double>(n_rows);
  bench.counters["macs"] = benchmark::Counter(macs, kRate, kThousands);
}
BENCHMARK(delta_rule)
    ->Args({1, 0})
    ->Args({512, 0})
    ->Args({512, 1})
    ->ArgNames({"rows", "chunked"})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

void causal_conv_silu(benchmark::State& bench) {
  const int64_t n_rows = bench.range(0);
  const std::unique_ptr<Backend> backend = make_cpu_backend({});
  backend->reserve(delta_limits(n_rows));
  const DeltaLayers layers(n_rows);
  const OneSpan span(*layers.state, n_rows);
  std::vector<float> u(static_cast<size_t>(kChannels * n_rows)), w = random_floats(4 * kChannels, 5);
  int64_t layer = 0;
  for (auto _ : bench) {
    backend->causal_conv_silu(matrix_f32(u.data(), kChannels, n_rows), matrix_f32(w.data(), 4, kChannels), layer,
                              span.rows());
    layer = (layer + 1) % layers.n_layers;
  }
  label(bench, *backend);
}
BENCHMARK(causal_conv_silu)->Arg(1)->Arg(512)->ArgName("rows")->UseRealTime()->Unit(benchmark::kMicrosecond);

/// The verbs of one row: {features per piece, pieces per row}.
enum RowVerb { kNorm, kHeadNorm, kNormGate, kGate, kSwiglu, kAdd, kRope, kAngles, kDecay };
struct RowShape {
  const char* name;
  int64_t dim, pieces;
};
constexpr RowShape kRowShapes[] = {{"rms_norm 2560", 2560, 1},
                                   {"rms_norm of 32 heads of 128", 128, 32},
                                   {"norm_silu_gate", 128, 32},
                                   {"sigmoid_gate 4096", 256, 16},
                                   {"swiglu 9728", 9728, 1},
                                   {"add 2560", 2560, 1},
                                   {"rope of 32 heads of 128", 128, 32},
                                   {"rope_angles of 128", 128, 1},
                                   {"decay 32", 32, 1}};

void row_verb(benchmark::State& bench) {
  const int64_t verb = bench.range(0), n_rows = bench.range(1);
  const RowShape& shape = kRowShapes[verb];
  const std::unique_ptr<Backend> backend = make_cpu_backend({});
  std::vector<float> a = random_floats(shape.dim * shape.pieces * n_rows, 6), b = a, c = a;
  std::vector<float> w(static_cast<size_t>(shape.dim), 1.0f);
  if (verb == kNormGate) b.assign(b.size(), 1.0f);  // verbs in place: values may not creep into the denormals
  if (verb == kGate) b.assign(b.size(), 20.0f);
  const Tensor x = heads_of(a, shape.dim, shape.pieces, n_rows), y = heads_of(b, shape.dim, shape.pieces, n_rows);
  const Tensor z = heads_of(c, shape.dim, shape.pieces, n_rows), weight = vector_f32(w.data(), shape.dim);
  RopeTable rope;
  for (int64_t i = 0; i < 64; ++i) rope.frequency.push_back(1.0 / static_cast<double>(1 + i * i));
  const StateLayout layout{{{1, 32, 32}}, {}};
  State state(layout, std::make_shared<KvPool>(layout, 4, DType::f16, DType::f16), 1024);
  state.begin(n_rows);
  const OneSpan span(state, n_rows);
  std::vector<float> turn(static_cast<size_t>(128 * n_rows), 0.6f);
  for (size_t i = 0; i < turn.size(); ++i) turn[i] = i % 128 < 64 ? 0.8f : 0.6f;  // keeps lengths
  const Tensor angles = matrix_f32(turn.data(), 128, n_rows);
  const auto run = [&] {
    switch (verb) {
      case kNorm:
      case kHeadNorm:
        return backend->rms_norm(x, weight, 1e-6f, y);
      case kNormGate:
        return backend->norm_silu_gate(x, weight, 1e-6f, y);
      case kGate:
        return backend->sigmoid_gate(x, y);
      case kSwiglu:
        return backend->swiglu(x, y, z);
      case kAdd:
        return backend->add(x, y);
      case kRope:
        return backend->rope(x, rope, angles);
      case kAngles:
        return backend->rope_angles(rope, span.rows(), angles);
      default:
        return backend->decay(matrix_f32(a.data(), shape.dim, n_rows), weight, weight);
    }
  };
  for (auto _ : bench) run();
  bench.SetLabel(shape.name);
}
BENCHMARK(row_verb)
    ->ArgsProduct({benchmark::CreateDenseRange(0, 8, 1), {1, 512}})
    ->ArgNames({"verb", "rows"})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace kz
