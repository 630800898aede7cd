// One test of speed: the same tokens several times, counted and timed.
#include <fmt/format.h>
#include <kazeia/bench.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "core/hash.h"
#include "core/system.h"
#include "engine/bench_counts.h"
#include "engine/memory_account.h"
#include "engine/random.h"
#include "engine/session_impl.h"

namespace kz {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::vector<int32_t> random_ids(int64_t n, int64_t n_vocab) {
  Random random(42);
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (int32_t& id : ids) id = static_cast<int32_t>(random.next() % static_cast<uint64_t>(n_vocab));
  return ids;
}

SessionOptions session_options(const BenchTest& test, const BenchOptions& options) {
  SessionOptions session = options.session;
  session.n_ctx = test.n_ctx();
  return session;
}

struct PageFaults {
  PageFaults() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    minor = usage.ru_minflt;
    major = usage.ru_majflt;
  }
  int64_t minor = 0, major = 0;
};

/// A session that runs one test again and again.
class BenchRun {
 public:
  BenchRun(std::shared_ptr<EngineCore> core, const BenchTest& test, const SessionOptions& options)
      : test_(test),
        ids_(random_ids(test.n_ctx(), core->model->config().n_vocab)),
        session_(core, plan_session(options, *core->model)) {}

  /// Brings the context to its depth.
  void prepare() {
    const auto depth = static_cast<size_t>(test_.n_depth);
    if (depth > 0 && session_.history.size() >= depth && session_.sequence.can_cut_to(test_.n_depth)) {
      session_.sequence.cut_to(test_.n_depth);
      session_.history.resize(depth);
      return;
    }
    session_.sequence.clear();
    session_.history.clear();
    if (depth == 0) return;
    session_.sync(std::span(ids_).first(depth));
    session_.sequence.keep();  // filling takes longer than the test
  }

  /// Returns seconds.
  double repeat() {
    const Clock::time_point start = Clock::now();
    const auto n_known = static_cast<size_t>(test_.n_depth + test_.n_prompt);
    if (test_.n_prompt > 0) session_.sync(std::span(ids_).first(n_known));
    for (size_t i = n_known; i < ids_.size(); ++i) session_.append({&ids_[i], 1}, true);
    return seconds_since(start);
  }

  std::span<const float> logits() const { return session_.logits; }
  int64_t kept_bytes() const { return session_.sequence.kept_bytes(); }

 private:
  BenchTest test_;
  std::vector<int32_t> ids_;
  SessionCore session_;
};

void check_memory(const EngineCore& core, const BenchTest& test, const SessionPlan& plan) {
  int64_t need = 0;
  for (const MemoryItem& item : session_memory(plan, *core.model, *core.backend)) need += item.size_bytes;
  const int64_t available = available_memory_bytes();
  if (available <= 0 || need <= available) return;
  throw Error(ErrorCode::out_of_memory, fmt::format("test {} needs {} MiB for its session, the system has {} MiB left",
                                                    test.name(), need >> 20, available >> 20));
}

BenchProfile profile(const Engine& engine, BenchRun& run) {
  run.prepare();
  const std::vector<KernelPlacement> before = engine.placement();
  engine.time_verbs(true);
  BenchProfile profile;
  profile.total_seconds = run.repeat();
  engine.time_verbs(false);
  profile.verbs = placement_since(engine.placement(), before);
  return profile;
}

/// One repetition; adds its figures to `result`.
void measure(const Engine& engine, BenchRun& run, BenchResult& result) {
  run.prepare();
  const std::vector<KernelPlacement> before = engine.placement();
  const PageFaults faults_before;
  const double seconds = run.repeat();
  const PageFaults faults;
  count_into(result, placement_since(engine.placement(), before));
  const uint64_t hash = checksum(std::as_bytes(run.logits()));
  if (result.seconds.empty()) result.logits_hash = hash;
  result.same_logits = result.same_logits && hash == result.logits_hash;
  result.seconds.push_back(seconds);
  result.minor_faults += faults.minor - faults_before.minor;
  result.major_faults += faults.major - faults_before.major;
}

}  // namespace

std::string BenchTest::name() const {
  std::string text;
  if (n_prompt > 0) text = fmt::format("pp{}", n_prompt);
  if (n_gen > 0) text += fmt::format("{}tg{}", text.empty() ? "" : "+", n_gen);
  if (n_depth > 0) text += fmt::format(" @ d{}", n_depth);
  return text;
}

void check_bench_test(const Engine& engine, const BenchTest& test, const BenchOptions& options) {
  const int64_t n_ctx_train = engine.info().n_ctx_train;
  if (test.n_prompt < 0 || test.n_gen < 0 || test.n_depth < 0 || test.n_tokens() == 0) {
    throw Error(ErrorCode::bad_argument, fmt::format("a test has {} prompt and {} new tokens at depth {}: nothing to "
                                                     "measure",
                                                     test.n_prompt, test.n_gen, test.n_depth));
  }
  if (n_ctx_train > 0 && test.n_ctx() > n_ctx_train) {
    throw Error(ErrorCode::bad_argument,
                fmt::format("test {} needs a context of {} tokens, but the model was trained on {}", test.name(),
                            test.n_ctx(), n_ctx_train));
  }
  const EngineCore& core = *engine.impl_->core;
  check_memory(core, test, plan_session(session_options(test, options), *core.model));
}

BenchResult run_bench(const Engine& engine, const BenchTest& test, const BenchOptions& options) {
  check_bench_test(engine, test, options);
  if (options.repetitions < 1) {
    throw Error(ErrorCode::bad_argument, fmt::format("{} repetitions, expected 1 or more", options.repetitions));
  }
  BenchResult result;
  result.test = test;
  const auto pinned = engine.impl_->core->place_caller();
  reset_peak_memory();
  BenchRun run(engine.impl_->core, test, session_options(test, options));
  const auto announce = [&] {
    if (options.on_repetition) options.on_repetition();
  };
  if (options.warm_up) {
    announce();
    run.prepare();
    run.repeat();
  }
  for (int64_t i = 0; i < options.repetitions; ++i) {
    announce();
    measure(engine, run, result);
    if (options.limits != nullptr) result.limits.push_back(options.limits->measure());
  }
  result.memory = process_memory();
  result.memory.peak_bytes -= run.kept_bytes();
  result.memory.anonymous_bytes -= run.kept_bytes();
  if (options.limits != nullptr) {
    result.memory.peak_bytes -= options.limits->buffer_bytes();
    result.memory.anonymous_bytes -= options.limits->buffer_bytes();
  }
  if (options.profile) result.profile = profile(engine, run);
  return result;
}

double time_to_first_token(const Engine& engine, const SessionOptions& options, int64_t n_prompt) {
  const BenchTest test{n_prompt, 0, 0};
  BenchOptions bench;
  bench.session = options;
  check_bench_test(engine, test, bench);
  const auto pinned = engine.impl_->core->place_caller();
  BenchRun run(engine.impl_->core, test, session_options(test, bench));
  const Clock::time_point start = Clock::now();
  run.repeat();
  const std::span<const float> logits = run.logits();
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  return likeliest == logits.end() ? 0 : seconds_since(start);
}

}  // namespace kz
