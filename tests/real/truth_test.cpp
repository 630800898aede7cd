// Class q8 with every strip type: SmolLM2 requantised to it, 8-bit against float activations on the same weights.
//
// The test reads a short piece of the text. With KZ_TRUTH_TABLE=1 it reads all of it and prints the rows of
// bench/results/q8-truth.md.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "real/models.h"
#include "real/truth.h"

namespace kz::testing {
namespace {

/// A requantised copy that goes away with the test.
class Requantised {
 public:
  explicit Requantised(const std::string& type) : path_(::testing::TempDir() + "/kazeia-truth-" + type + ".gguf") {
    QuantizeOptions options;
    options.type = type;
    options.pure = options.allow_requantize = true;
    result_ = quantize(cached(kSmolLm2File), path_, options);
  }
  ~Requantised() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  Requantised(const Requantised&) = delete;
  Requantised& operator=(const Requantised&) = delete;

  const std::string& path() const { return path_; }
  size_t n_fallbacks() const { return result_.fallbacks.size(); }

 private:
  std::string path_;
  QuantizeResult result_;
};

class Q8Truth : public ::testing::TestWithParam<const char*> {};

TEST_P(Q8Truth, StaysCloseToFloatActivations) {
  if (!std::filesystem::exists(cached(kSmolLm2File))) {
    GTEST_SKIP() << cached(kSmolLm2File) << " is absent: ./kz run --model smollm2 fetches it";
  }
  const std::string type = GetParam();
  const bool all = std::getenv("KZ_TRUTH_TABLE") != nullptr;
  const Requantised model(type);
  const auto f32 = open_engine(model.path(), "cpu", 0, "f32"), q8 = open_engine(model.path(), "cpu", 0, "q8");
  const std::vector<int32_t> ids = f32->tokenize(read_bytes(data("real/shakespeare-24k.txt")));
  const int64_t n_ctx = all ? 512 : 128;
  const Truth truth = measure_truth(*f32, *q8, all ? ids : std::vector(ids.begin(), ids.begin() + n_ctx), n_ctx);
  const double ratio = truth.q8_perplexity / truth.f32_perplexity;
  std::printf("| %s | %zu | %.5f | %.4f | %.4f | %.5f | %.5f |\n", type.c_str(), model.n_fallbacks(), truth.mean_kl,
              truth.f32_perplexity, truth.q8_perplexity, ratio, truth.largest_nll_gap);
  EXPECT_EQ(truth.n_scored, (all ? static_cast<int64_t>(ids.size()) / n_ctx : 1) * (n_ctx / 2 - 1));
  EXPECT_LT(truth.mean_kl, 0.008);
  if (type == "F16" || type == "BF16") {
    EXPECT_EQ(truth.mean_kl, 0);  // float weights stay in class f32
  } else {
    EXPECT_GT(truth.mean_kl, 0);
  }
  if (!all) return;  // 63 predictions are too few for these two
  EXPECT_NEAR(ratio, 1, 0.01);
  EXPECT_LT(truth.largest_nll_gap, 0.02);
}

INSTANTIATE_TEST_SUITE_P(Types, Q8Truth,
                         ::testing::Values("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL",
                                           "F16", "BF16"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace kz::testing
