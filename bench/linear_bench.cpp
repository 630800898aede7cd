// Matrix products of the cpu backend with the shapes of Qwen3-4B and Qwen3.5-4B.
//
// usage: build/release/bin/linear_bench --benchmark_repetitions=5
//
// `weights` is the rate at which bytes of the weight matrix are used: for one row compare it with the read bandwidth of
// the machine. `macs` counts multiply-adds. Each benchmark walks over several matrices, so that none stays in a cache.
#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "core/arena.h"
#include "core/half.h"
#include "cpu/cpu_backend.h"

namespace kz {
namespace {

constexpr int64_t kMemoryBytes = int64_t{256} << 20;  // of all matrices that one benchmark walks over

/// Random codes with a scale that keeps values finite.
void fill_q4_0(std::byte* blocks, int64_t n_blocks) {
  std::mt19937 random(1);
  const uint16_t scale = f32_to_f16(0.01f);
  for (int64_t b = 0; b < n_blocks; ++b) {
    std::byte* block = blocks + 18 * b;
    for (int64_t i = 2; i < 18; ++i) block[i] = static_cast<std::byte>(random());
    block[0] = static_cast<std::byte>(scale);
    block[1] = static_cast<std::byte>(scale >> 8);
  }
}

void linear_q4_0(benchmark::State& state) {
  const int64_t cols = state.range(0), rows = state.range(1), n = state.range(2);
  const int64_t bytes = rows * row_bytes(DType::q4_0, cols);
  const int64_t n_matrices = std::max<int64_t>(1, kMemoryBytes / bytes);
  const std::unique_ptr<Backend> backend = make_cpu_backend({});
  WorkLimits limits;
  limits.rows = n;
  limits.features = cols;
  backend->reserve(limits);
  const Arena memory("weights", static_cast<size_t>(bytes * n_matrices));
  fill_q4_0(memory.data(), bytes * n_matrices / 18);
  std::vector<Weight> weights;
  for (int64_t m = 0; m < n_matrices; ++m) {
    WeightSource source;
    source.name = "w";
    source.tensor.data = memory.data() + m * bytes;
    source.tensor.dtype = DType::q4_0;
    source.tensor.ne = {cols, rows, 1, 1};
    weights.push_back(backend->import_weight(source));
  }
  std::vector<float> x(static_cast<size_t>(cols * n), 0.5f), y(static_cast<size_t>(rows * n));
  const Tensor in = matrix_f32(x.data(), cols, n), out = matrix_f32(y.data(), rows, n);
  size_t next = 0;
  for (auto _ : state) {
    backend->linear(in, weights[next], out);
    next = (next + 1) % weights.size();
    benchmark::DoNotOptimize(y.data());
  }
  state.SetLabel(std::string(backend->kernels()) + ", " + std::to_string(backend->n_threads()) + " threads");
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["weights"] = benchmark::Counter(static_cast<double>(bytes), rate, benchmark::Counter::kIs1000);
  state.counters["macs"] = benchmark::Counter(static_cast<double>(cols * rows * n), rate, benchmark::Counter::kIs1000);
}

/// {inputs, outputs} of Qwen3-4B and Qwen3.5-4B, each for one row (decode) and 64 rows (prefill).
void shapes(benchmark::internal::Benchmark* bench) {
  for (const int64_t n : {1, 64}) {
    for (const auto& [cols, rows] : {std::pair{2560, 4096}, {4096, 2560}, {2560, 9728}, {9728, 2560}, {2560, 9216}}) {
      bench->Args({cols, rows, n});
    }
  }
}
BENCHMARK(linear_q4_0)->Apply(shapes)->ArgNames({"cols", "rows", "n"})->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace kz
