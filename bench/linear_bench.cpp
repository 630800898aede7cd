// Matrix products of the cpu backend with the shapes of Qwen3-4B and Qwen3.5-4B, and reading memory beside them.
//
// usage: build/release/bin/linear_bench --benchmark_filter='q8/Q4_0/.*|read' --benchmark_repetitions=5
//            --benchmark_enable_random_interleaving=true
//
// Names are ACTIVATIONS/TYPE/INPUTSxOUTPUTS/ROWS, with /TABLE behind for the tables that are not the best. `weights` is
// the rate at which bytes of the weight matrix are used: for one row compare it with `read`, the same memory read by
// the same threads. `macs` counts multiply-adds. Each benchmark walks over several matrices: none stays in a cache.
#include <benchmark/benchmark.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "backend/backend.h"
#include "core/arena.h"
#include "core/half.h"
#include "core/thread_pool.h"
#include "cpu/cpu_backend.h"

namespace kz {
namespace {

constexpr int64_t kMemoryBytes = int64_t{1} << 30;  // of all matrices that one benchmark walks over
constexpr int64_t kMostRows = 512;

/// Random codes with scales that keep values finite.
void fill(DType type, std::byte* blocks, int64_t n_blocks) {
  std::mt19937_64 random(1);
  const int64_t size = dtype_info(type).block_bytes;
  const uint16_t scale = f32_to_f16(0.01f);
  for (int64_t at = 0; at + 8 <= n_blocks * size; at += 8) {
    const uint64_t word = random();
    std::memcpy(blocks + at, &word, 8);
  }
  const bool two = type == DType::q4_1 || type == DType::q5_1 || type == DType::q4_k || type == DType::q5_k;
  for (int64_t b = 0; b < n_blocks; ++b) {
    std::byte* block = blocks + size * b + (type == DType::q6_k ? 208 : 0);
    std::memcpy(block, &scale, 2);
    if (two) std::memcpy(block + 2, &scale, 2);
  }
}

struct Shape {
  std::string isa, activations;
  DType type;
  int64_t cols, rows;
  auto operator<=>(const Shape&) const = default;
};

/// A backend with enough matrices of one shape; the last one used is kept, as benchmarks of one shape follow each
/// other.
struct Matrices {
  explicit Matrices(const Shape& s) : shape(s), backend(make_cpu_backend({0, s.isa, s.activations})) {
    WorkLimits limits;
    limits.rows = kMostRows;
    limits.features = s.cols;
    backend->reserve(limits);
    const int64_t bytes = s.rows * row_bytes(s.type, s.cols);
    file = Arena("weights", static_cast<size_t>(bytes));
    fill(s.type, file.data(), bytes / dtype_info(s.type).block_bytes);
    WeightSource source;
    source.name = "w";
    source.tensor.data = file.data();
    source.tensor.dtype = s.type;
    source.tensor.ne = {s.cols, s.rows, 1, 1};
    for (int64_t n = std::max<int64_t>(1, kMemoryBytes / bytes); n > 0; --n) {
      weights.push_back(backend->import_weight(source));
      if (weights.back().layout != WeightLayout::packed && n > 4) n = 4;  // used where they lie: one copy in the cache
    }
  }

  static Matrices& of(const Shape& shape) {
    static std::unique_ptr<Matrices> last;
    if (!last || last->shape != shape) {
      last.reset();
      last = std::make_unique<Matrices>(shape);
    }
    return *last;
  }

  Shape shape;
  std::unique_ptr<Backend> backend;
  Arena file;
  std::vector<Weight> weights;
};

void linear(benchmark::State& state, const Shape& shape, int64_t n) {
  Matrices& m = Matrices::of(shape);
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(shape.cols * n)), y(static_cast<size_t>(shape.rows * n));
  for (float& v : x) v = normal(random);
  const Tensor in = matrix_f32(x.data(), shape.cols, n), out = matrix_f32(y.data(), shape.rows, n);
  size_t next = 0;
  for (auto _ : state) {
    m.backend->linear(in, m.weights[next], out);
    next = (next + 1) % m.weights.size();
    benchmark::DoNotOptimize(y.data());
  }
  state.SetLabel(std::string(m.backend->kernels()) + ", " + std::to_string(m.backend->n_threads()) + " threads");
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  const auto bytes = static_cast<double>(shape.rows * row_bytes(shape.type, shape.cols));
  const auto macs = static_cast<double>(shape.cols * shape.rows * n);
  state.counters["weights"] = benchmark::Counter(bytes, rate, benchmark::Counter::kIs1000);
  state.counters["macs"] = benchmark::Counter(macs, rate, benchmark::Counter::kIs1000);
}

/// Memory read in pieces by all threads, as the weights are; `ahead` bytes of software prefetch.
void read_memory(benchmark::State& state) {
  static const Arena memory = [] {
    Arena a("memory", static_cast<size_t>(kMemoryBytes));
    a.prefer_large_pages();
    std::memset(a.data(), 1, a.size_bytes());
    return a;
  }();
  const int64_t ahead = state.range(0);
  constexpr int64_t kPiece = 256 << 10;
  ThreadPool pool(0);
  for (auto _ : state) {
    pool.parallel_for(kMemoryBytes / kPiece, 1, [&](int64_t begin, int64_t end, int) {
      uint64_t sum[8] = {};
      const auto* p = reinterpret_cast<const uint64_t*>(memory.data());
      for (int64_t i = begin * kPiece / 8; i < end * kPiece / 8; i += 8) {
        if (ahead > 0) __builtin_prefetch(p + i + ahead / 8, 0, 3);
        for (int64_t j = 0; j < 8; ++j) sum[j] ^= p[i + j];
      }
      for (uint64_t s : sum) benchmark::DoNotOptimize(s);
    });
  }
  state.counters["bytes"] =
      benchmark::Counter(static_cast<double>(kMemoryBytes), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(read_memory)->Arg(0)->Arg(2048)->Arg(4096)->UseRealTime()->Unit(benchmark::kMillisecond);

void add(const Shape& shape, int64_t n) {
  std::string name = shape.activations + "/" + std::string(dtype_name(shape.type)) + "/" + std::to_string(shape.cols) +
                     "x" + std::to_string(shape.rows) + "/" + std::to_string(n);
  if (shape.isa != "auto") name += "/" + shape.isa;
  benchmark::RegisterBenchmark(name.c_str(), linear, shape, n)->UseRealTime()->Unit(benchmark::kMicrosecond);
}

/// {inputs, outputs} of Qwen3-4B (q, o, gate and up, down) and of Qwen3.5-4B where they differ.
void add_all() {
  for (const auto& [cols, rows] :
       {std::pair{2560, 9728}, {9728, 2560}, {2560, 4096}, {4096, 2560}, {2560, 9216}, {9216, 2560}}) {
    for (const DType type : {DType::q4_0, DType::q8_0, DType::q4_k, DType::q6_k, DType::q4_1, DType::q5_0, DType::q5_1,
                             DType::q5_k, DType::iq4_nl}) {
      for (const KernelTableInfo& table : cpu_kernel_tables()) {
        if (!table.runs_here || table.name == "scalar") continue;
        const std::string isa = table.name == cpu_kernel_tables().front().name ? "auto" : std::string(table.name);
        for (const int64_t n : {1, 2, 4, 8, 16, 32, 128, 512}) add({isa, "q8", type, cols, rows}, n);
      }
    }
    for (const int64_t n : {1, 64}) add({"auto", "f32", DType::q4_0, cols, rows}, n);
  }
}

}  // namespace
}  // namespace kz

int main(int argc, char** argv) {
  kz::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
