// Perplexity of text that the built-in model was not trained on.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "support/numbers.h"
#include "tiny/variants.h"

namespace kz::testing {
namespace {

nlohmann::json expected_of(const std::string& variant) {
  const auto expected = nlohmann::json::parse(read_bytes(data("tiny/expected.json")));
  return expected["files"]["kazeia-tiny-" + variant + ".gguf"]["perplexity"];
}

class TinyPerplexity : public ::testing::TestWithParam<std::string> {};

TEST_P(TinyPerplexity, EqualsTheVector) {
  const auto expected = expected_of(GetParam());
  const auto engine = open_engine(tiny_variant(GetParam()));
  int64_t n_reports = 0;
  const PerplexityResult result = perplexity(*engine, read_bytes(data("tiny/valid.txt")), 512, f32_session(),
                                             [&](int64_t chunk, int64_t n, double) {
                                               EXPECT_EQ(chunk, n_reports++);
                                               EXPECT_EQ(n, 17);
                                             });
  EXPECT_EQ(result.n_tokens, expected["tokens"].get<int64_t>());
  EXPECT_EQ(result.n_chunks, expected["chunks"].get<int64_t>());
  EXPECT_EQ(result.n_scored, 255 * result.n_chunks);
  EXPECT_EQ(n_reports, result.n_chunks);
  const double wanted = expected["ppl"];
  EXPECT_NEAR(result.perplexity / wanted, 1, 2e-4);
  RecordProperty("perplexity", std::to_string(result.perplexity));
  // Each chunk by itself, from the running figures.
  const auto chunk_nll = expected["chunk_mean_nll"].get<std::vector<double>>();
  double before = 0;
  for (size_t i = 0; i < chunk_nll.size(); ++i) {
    const double total = std::log(result.running[i]) * static_cast<double>(i + 1);
    EXPECT_NEAR(total - before, chunk_nll[i], 5e-4) << "chunk " << i;
    before = total;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, TinyPerplexity, ::testing::Values("f16", "q4_0", "q8_0", "q4_k_m"),
                         [](const auto& one) { return one.param; });

TEST(TinyPerplexityLimits, FinalNewlineAndBatchDoNotMatter) {
  const auto engine = open_engine(tiny_q4_0());
  const std::string text = read_bytes(data("tiny/valid.txt")).substr(0, 6000);
  const auto run = [&](const std::string& t, int64_t n_batch) {
    return perplexity(*engine, t, 128, f32_session(1024, n_batch), {}).perplexity;
  };
  const double wanted = run(text, 512);
  EXPECT_EQ(run(text + "\n", 512), wanted);
  EXPECT_EQ(run(text, 17), wanted);
}

TEST(TinyPerplexityLimits, TooLittleTextIsAnError) {
  const auto engine = open_engine(tiny_q4_0());
  try {
    perplexity(*engine, "Once upon a time", 512, f32_session(), {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_argument);
    EXPECT_NE(std::string(error.what()).find("512"), std::string::npos) << error.what();
  }
  EXPECT_THROW(perplexity(*engine, "Once upon a time", 7, f32_session(), {}), Error);
  EXPECT_THROW(perplexity(*engine, "", 8, f32_session(), {}), Error);
}

}  // namespace
}  // namespace kz::testing
