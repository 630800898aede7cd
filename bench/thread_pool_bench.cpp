// What a loop of the thread pool costs besides its body: this is paid a few hundred times per token.
//
// usage: build/release/bin/thread_pool_bench --benchmark_repetitions=5
#include <benchmark/benchmark.h>

#include <atomic>

#include "core/thread_pool.h"

namespace kz {
namespace {

/// A loop with `pieces` pieces that do nothing.
void empty_loop(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  const int64_t pieces = state.range(1);
  for (auto _ : state) {
    pool.parallel_for(pieces, 1, [](int64_t begin, int64_t, int) { benchmark::DoNotOptimize(begin); });
  }
}
BENCHMARK(empty_loop)->ArgsProduct({{1, 2}, {1, 2, 8, 128}})->ArgNames({"threads", "pieces"})->UseRealTime();

/// A loop whose two halves take the same time, after a serial step of the caller: a verb of a decode step.
void loop_after_serial_step(benchmark::State& state) {
  ThreadPool pool(2);
  const auto work = [](int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) benchmark::DoNotOptimize(i);
  };
  const int64_t serial = state.range(0), half = state.range(1);
  for (auto _ : state) {
    work(serial);
    pool.parallel_for(2, 1, [&](int64_t, int64_t, int) { work(half); });
  }
}
BENCHMARK(loop_after_serial_step)
    ->ArgsProduct({{0, 1000, 10000}, {0, 1000, 10000}})
    ->ArgNames({"serial", "half"})
    ->UseRealTime();

}  // namespace
}  // namespace kz
