// What a model takes, as the system counts it, against what was announced before.
#include <gtest/gtest.h>
#include <kazeia/bench.h>

#include <filesystem>
#include <fstream>

#include "real/models.h"
#include "support/engines.h"
#include "support/numbers.h"

namespace kz::testing {
namespace {

constexpr int64_t kMiB = 1 << 20;

int64_t total(const std::vector<MemoryItem>& items) {
  int64_t bytes = 0;
  for (const MemoryItem& item : items) bytes += item.size_bytes;
  return bytes;
}

/// This process's share of everything resident, in bytes.
int64_t proportional_bytes() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string word; rollup >> word;) {
    if (word != "Pss:") continue;
    int64_t kib = 0;
    rollup >> kib;
    return kib << 10;
  }
  return 0;
}

class RealMemory : public ::testing::TestWithParam<const char*> {};

/// From opening the file to the last token of a context that is filled: never more than the packed weights and a tenth,
/// and what the session announced; and not much less either, or the announcement would be worth nothing.
TEST_P(RealMemory, PeakStaysWithinTheEstimate) {
  const std::string path = cached(GetParam());
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent: scripts/fetch_model fetches it";
  SessionOptions options;
  options.n_ctx = 1024;
  const EngineOptions opening = engine_options(path, "cpu", 2, "q8");
  const int64_t announced = total(estimate_memory(opening, options));
  if (!reset_peak_memory()) GTEST_SKIP() << "the system does not let a process reset its peak";
  const ProcessMemory before = process_memory();
  const int64_t resident_before = before.anonymous_bytes + before.file_bytes, share_before = proportional_bytes();
  const auto engine = Engine::open(opening);
  const auto session = engine->open_session(options);
  std::vector<int32_t> prompt = engine->tokenize(read_bytes(data("real/shakespeare-24k.txt")));
  ASSERT_GT(prompt.size(), 1000u);
  prompt.resize(1000);
  GenerateOptions generate = greedy(16);
  generate.sampler.ignore_eos = true;
  session->generate(prompt, generate);
  const int64_t peak = process_memory().peak_bytes - resident_before, share = proportional_bytes() - share_before;
  const int64_t engine_bytes = total(engine->memory()), session_bytes = total(session->memory());
  std::printf("%s: announced %ld MiB, peak %ld MiB, proportional share at the end %ld MiB\n", GetParam(),
              announced / kMiB, peak / kMiB, share / kMiB);
  EXPECT_EQ(announced, engine_bytes + session_bytes);
  EXPECT_LE(peak, engine_bytes + engine_bytes / 10 + session_bytes);
  EXPECT_LE(share, peak + kMiB);
  EXPECT_GE(share, announced - announced / 10);
}

INSTANTIATE_TEST_SUITE_P(Models, RealMemory, ::testing::Values(kSmolLm2File, kQwen25File),
                         [](const auto& one) { return one.param == kSmolLm2File ? "smollm2" : "qwen2_5"; });

}  // namespace
}  // namespace kz::testing
