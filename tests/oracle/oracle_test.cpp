// Every architecture computes the stored logits, however its tokens are cut into batches.
#include "oracle.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "model/testing.h"

namespace kz::testing {
namespace {

// A row is right within these shares of its length (tests/data/oracle: float32 in transformers is 1.7e-5 off).
double tolerance(Device device) { return device == Device::reference ? 5e-5 : 2e-4; }
const char* device_name(Device device) { return device == Device::reference ? "reference" : "cpu"; }

Runner make_runner(const Oracle& oracle, Device device) {
  return Runner(gguf::File::open(oracle.path()), make_backend(device));
}

/// The worst row of every model and device over all tests, printed at the end.
class WorstRows : public ::testing::Environment {
 public:
  static void add(const std::string& model, Device device, double error, const std::string& how) {
    Entry& entry = worst()[{model, device_name(device)}];
    if (error <= entry.error && !entry.how.empty()) return;
    entry = {error, how};
  }
  void TearDown() override {
    for (const auto& [key, entry] : worst()) {
      fmt::print("  {:18} {:9} worst row {:.1e} ({})\n", key.first, key.second, entry.error, entry.how);
    }
  }

 private:
  struct Entry {
    double error = 0;
    std::string how;
  };
  using Table = std::map<std::pair<std::string, std::string>, Entry>;
  static Table& worst() {
    static Table table;
    return table;
  }
};
const auto* const kWorstRows = ::testing::AddGlobalTestEnvironment(new WorstRows);

/// Checks stored rows, and what is known of every other row.
void expect_right(const Oracle& oracle, std::span<const float> logits, Device device, const std::string& how) {
  const double error = worst_row_error(oracle, logits);
  WorstRows::add(oracle.name, device, error, how);
  EXPECT_LE(error, tolerance(device)) << oracle.name << ' ' << how;
  const auto n_vocab = static_cast<size_t>(oracle.n_vocab);
  double worst_lse = 0;
  for (size_t p = 0; p < oracle.tokens.size(); ++p) {
    const std::span<const float> row = logits.subspan(p * n_vocab, n_vocab);
    EXPECT_EQ(arg_max(row), oracle.argmax[p]) << oracle.name << ' ' << how << " position " << p;
    worst_lse = std::max(worst_lse, std::abs(log_sum_exp(row) - oracle.logsumexp[p]) / std::abs(oracle.logsumexp[p]));
  }
  EXPECT_LE(worst_lse, tolerance(device)) << oracle.name << ' ' << how;
}

class OracleTest : public ::testing::TestWithParam<std::string> {};

TEST_P(OracleTest, ReferenceInOneBatch) {
  const Oracle oracle = load_oracle(GetParam());
  Runner runner = make_runner(oracle, Device::reference);
  expect_right(oracle, runner.run(oracle.tokens, 150), Device::reference, "one batch");
}

TEST_P(OracleTest, ReferenceInChunksAndSteps) {
  const Oracle oracle = load_oracle(GetParam());
  Runner runner = make_runner(oracle, Device::reference);
  for (const size_t chunk : {1, 7, 64}) {
    expect_right(oracle, runner.run(oracle.tokens, chunk), Device::reference, fmt::format("chunks of {}", chunk));
  }
}

TEST_P(OracleTest, ReferenceChunkedDeltaRule) {
  const Oracle oracle = load_oracle(GetParam());
  Runner runner = make_runner(oracle, Device::reference);
  for (const size_t chunk : {7, 64, 150}) {
    expect_right(oracle, runner.run(oracle.tokens, chunk, DeltaForm::chunked), Device::reference,
                 fmt::format("chunks of {}, WY form", chunk));
  }
}

TEST_P(OracleTest, CpuInAnyChunksGivesTheSameBytes) {
  const Oracle oracle = load_oracle(GetParam());
  Runner runner = make_runner(oracle, Device::cpu);
  const std::vector<float> whole = runner.run(oracle.tokens, 150);
  expect_right(oracle, whole, Device::cpu, "one batch");
  for (const size_t chunk : {1, 7, 64}) {
    const std::vector<float> rows = runner.run(oracle.tokens, chunk);
    ASSERT_EQ(rows.size(), whole.size());
    EXPECT_EQ(std::memcmp(rows.data(), whole.data(), whole.size() * sizeof(float)), 0)
        << oracle.name << " in chunks of " << chunk << ": " << relative_error(rows, whole);
  }
}

TEST_P(OracleTest, CpuChunkedDeltaRule) {
  const Oracle oracle = load_oracle(GetParam());
  Runner runner = make_runner(oracle, Device::cpu);
  for (const size_t chunk : {1, 7, 64, 150}) {
    expect_right(oracle, runner.run(oracle.tokens, chunk, DeltaForm::chunked), Device::cpu,
                 fmt::format("chunks of {}, WY form", chunk));
  }
}

TEST_P(OracleTest, PrefillThenDecode) {
  const Oracle oracle = load_oracle(GetParam());
  for (const Device device : {Device::reference, Device::cpu}) {
    Runner runner = make_runner(oracle, device);
    const std::unique_ptr<State> state = runner.new_state();
    std::vector<float> logits;
    size_t done = 0;
    while (done < oracle.tokens.size()) {
      const size_t n = done == 0 ? 100 : 1;
      const Runner::Part part{state.get(), std::span(oracle.tokens).subspan(done, n)};
      const std::vector<float> rows = runner.forward({&part, 1});
      logits.insert(logits.end(), rows.begin(), rows.end());
      done += n;
    }
    expect_right(oracle, logits, device, "prefill 100, decode 50");
  }
}

/// Two sequences in the same batches (B029, with key and value heads that differ in number), each cut differently, one
/// of them twice as far as the other at times.
TEST_P(OracleTest, TwoSequencesInOneBatch) {
  const Oracle oracle = load_oracle(GetParam());
  for (const Device device : {Device::reference, Device::cpu}) {
    Runner runner = make_runner(oracle, device);
    const std::vector<float> alone = runner.run(oracle.tokens, 150);
    const std::unique_ptr<State> states[] = {runner.new_state(), runner.new_state()};
    const size_t cuts[][2] = {{1, 70}, {64, 1}, {2, 9}, {33, 0}, {49, 69}, {1, 1}};
    size_t done[2] = {0, 0};
    std::vector<float> logits[2];
    const auto n_vocab = static_cast<size_t>(oracle.n_vocab);
    for (const auto& cut : cuts) {
      std::vector<Runner::Part> parts;
      for (const size_t s : {1, 0}) {  // the second sequence's rows come first
        if (cut[s] > 0) parts.push_back({states[s].get(), std::span(oracle.tokens).subspan(done[s], cut[s])});
      }
      const std::vector<float> rows = runner.forward(parts);
      size_t row = 0;
      for (const size_t s : {1, 0}) {
        const float* first = rows.data() + row * n_vocab;
        logits[s].insert(logits[s].end(), first, first + cut[s] * n_vocab);
        row += cut[s];
        done[s] += cut[s];
      }
    }
    for (const std::vector<float>& rows : logits) {
      expect_right(oracle, rows, device, "two sequences");
      if (device == Device::cpu) {
        EXPECT_EQ(std::memcmp(rows.data(), alone.data(), alone.size() * sizeof(float)), 0) << oracle.name;
      }
    }
  }
}

/// Asking for some rows only gives the same rows, and none at all is allowed (a prefill chunk in the middle).
TEST_P(OracleTest, OnlyTheWantedRows) {
  const Oracle oracle = load_oracle(GetParam());
  Runner runner = make_runner(oracle, Device::cpu);
  const std::vector<float> all = runner.run(oracle.tokens, 150);
  const std::unique_ptr<State> state = runner.new_state();
  const Runner::Part first{state.get(), std::span(oracle.tokens).first(60)};
  EXPECT_TRUE(runner.forward({&first, 1}, {}, DeltaForm::token).empty());
  const Runner::Part second{state.get(), std::span(oracle.tokens).subspan(60)};
  const int32_t wanted[] = {3, 4, 89};
  const std::vector<float> rows = runner.forward({&second, 1}, wanted, DeltaForm::token);
  const auto n_vocab = static_cast<size_t>(oracle.n_vocab);
  ASSERT_EQ(rows.size(), 3 * n_vocab);
  for (size_t i = 0; i < 3; ++i) {
    const float* expected = all.data() + (60 + static_cast<size_t>(wanted[i])) * n_vocab;
    EXPECT_EQ(std::memcmp(rows.data() + i * n_vocab, expected, n_vocab * sizeof(float)), 0) << wanted[i];
  }
}

/// A cleared state is as good as a new one: nothing of the last text is left in it, and nothing that was never
/// written is read (B031: the runner fills work memory differently each time).
TEST_P(OracleTest, ClearedStateForgets) {
  const Oracle oracle = load_oracle(GetParam());
  Runner runner = make_runner(oracle, Device::cpu);
  const std::unique_ptr<State> state = runner.new_state();
  const Runner::Part part{state.get(), oracle.tokens};
  const std::vector<float> first = runner.forward({&part, 1});
  state->clear();
  const std::vector<float> second = runner.forward({&part, 1});
  EXPECT_EQ(std::memcmp(first.data(), second.data(), first.size() * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, OracleTest, ::testing::ValuesIn(oracle_names()), [](const auto& model) {
  std::string name = model.param;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

}  // namespace
}  // namespace kz::testing
