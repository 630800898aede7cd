#include "cpu/verb_times.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "cpu/cpu_backend.h"

namespace kz {
namespace {

const KernelUse* find(const std::vector<KernelUse>& uses, std::string_view verb, std::string_view weights) {
  for (const KernelUse& use : uses) {
    if (use.verb == verb && use.weights == weights) return &use;
  }
  return nullptr;
}

TEST(VerbTimer, TimesOnlyOnRequest) {
  VerbUse use;
  {
    const VerbTimer timer(use, 7, false);
  }
  EXPECT_EQ(use.calls, 1);
  EXPECT_EQ(use.bytes, 7);
  EXPECT_EQ(use.n_timed, 0);
  EXPECT_EQ(use.seconds, 0);
  {
    const VerbTimer timer(use, 0, true);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(use.calls, 2);
  EXPECT_EQ(use.n_timed, 1);
  EXPECT_GE(use.seconds, 0.002);
}

/// Weights of 2, 2 and 6 rows that meet one activation.
struct ThreeProducts {
  explicit ThreeProducts(const std::vector<std::string>& names) {
    for (size_t i = 0; i < names.size(); ++i) {
      floats[i].assign(static_cast<size_t>(cols * rows[i]), 0.5f);
      outs[i].assign(static_cast<size_t>(rows[i]), 0.0f);
      weights.push_back(backend->import_weight({names[i], matrix_f32(floats[i].data(), cols, rows[i])}));
    }
  }
  void run() {
    std::vector<Product> products;
    for (size_t i = 0; i < weights.size(); ++i) {
      products.push_back({&weights[i], matrix_f32(outs[i].data(), rows[i], 1), {}});
    }
    backend->linear_many(matrix_f32(x.data(), cols, 1), products);
  }

  static constexpr int64_t cols = 64;
  static constexpr int64_t rows[] = {2, 2, 6};
  std::unique_ptr<Backend> backend = make_cpu_backend({1, "scalar"});
  std::vector<float> floats[3], outs[3], x = std::vector<float>(cols, 1.0f);
  std::vector<Weight> weights;
};

TEST(VerbTimes, ProductsAreCountedByWhatTheirWeightsAreCalled) {
  ThreeProducts three({"blk.0.attn_q.weight", "blk.11.attn_q.weight", "output.weight"});
  three.backend->reserve({1, 1, 1, 1, ThreeProducts::cols, {}});
  three.run();
  three.run();
  const std::vector<KernelUse> uses = three.backend->kernel_uses();
  ASSERT_EQ(uses.size(), 2u);
  ASSERT_NE(find(uses, "linear", "attn_q"), nullptr);
  ASSERT_NE(find(uses, "linear", "output"), nullptr);
  EXPECT_EQ(find(uses, "linear", "attn_q")->calls, 4);
  EXPECT_EQ(find(uses, "linear", "attn_q")->bytes, 2 * 2 * (2 * 64 * 4));
  EXPECT_EQ(find(uses, "linear", "output")->calls, 2);
  EXPECT_EQ(find(uses, "linear", "output")->multiply_adds, 2 * 6 * 64);
  EXPECT_EQ(find(uses, "linear", "output")->kernel, "f32 panel scalar, F32");
  EXPECT_EQ(find(uses, "linear", "output")->seconds, 0);
}

TEST(VerbTimes, ProductsThatRunTogetherShareTheirTimeByBytes) {
  ThreeProducts three({"blk.0.ffn_gate.weight", "blk.0.ffn_up.weight", "blk.0.ffn_gate_inp[0..5]"});
  three.backend->reserve({1, 1, 1, 1, ThreeProducts::cols, {}});
  three.backend->time_verbs(true);
  three.run();
  three.backend->time_verbs(false);
  three.run();
  const std::vector<KernelUse> uses = three.backend->kernel_uses();
  const KernelUse *gate = find(uses, "linear", "ffn_gate"), *large = find(uses, "linear", "ffn_gate_inp[0..5]");
  ASSERT_NE(gate, nullptr);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(gate->calls, 2);
  EXPECT_EQ(gate->n_timed, 1);
  EXPECT_GT(gate->seconds, 0);
  EXPECT_DOUBLE_EQ(large->seconds, 3 * gate->seconds);
}

TEST(VerbTimes, StatesAndRowsCountPerSpan) {
  StateLayout layout;
  layout.attention = {{2, 32, 64}};
  const auto pool = std::make_shared<KvPool>(layout, 4, DType::f16, DType::q8_0);
  State state(layout, pool, 512);
  state.begin(3);
  const Span spans[] = {{&state, 0, 0, 3}};
  Rows rows;
  rows.spans = spans;
  EXPECT_EQ(kv_bytes(rows, 0), 3 * 2 * (32 * 2 + 2 * 34));
  EXPECT_EQ(state_bytes(rows, {4, 8, 16}), 2 * 8 * 16 * 16 * 4);
}

}  // namespace
}  // namespace kz
