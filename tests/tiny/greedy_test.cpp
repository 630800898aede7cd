// The trained model's greedy answers, word for word.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/numbers.h"
#include "tiny/variants.h"

namespace kz::testing {
namespace {

/// Below this the arithmetic of a file may decide which of two tokens comes first: the answer is compared up to
/// the first such step. Float32 on the F16 file differs by some 1e-4; four bits move logits by several tenths.
double small_gap(const std::string& variant) { return variant == "f16" ? 0.01 : 1.0; }

class TinyGreedy : public ::testing::TestWithParam<std::string> {};

TEST_P(TinyGreedy, AnswersWordForWord) {
  const auto vectors = nlohmann::json::parse(read_bytes(data("tiny/greedy.json")));
  const auto engine = open_engine(tiny_variant(GetParam()));
  const auto session = engine->open_session(f32_session());
  int n_whole = 0;
  for (const auto& answer : vectors["answers"]) {
    const auto prompt = answer["prompt_ids"].get<std::vector<int32_t>>();
    const auto ids = answer["ids"].get<std::vector<int32_t>>();
    const auto gaps = answer["gaps"].get<std::vector<double>>();
    const std::string name = answer["name"];
    EXPECT_EQ(engine->tokenize(answer["prompt"].get<std::string>(), {.parse_special = true}), prompt) << name;

    size_t n_sure = 0;
    while (n_sure < gaps.size() && gaps[n_sure] >= small_gap(GetParam())) ++n_sure;
    const bool is_whole = n_sure == gaps.size();
    n_whole += is_whole ? 1 : 0;
    const GenerateResult result = session->generate(prompt, greedy(static_cast<int64_t>(ids.size()) + 1));
    const size_t n = std::min(n_sure, ids.size());
    ASSERT_GE(result.tokens.size(), n) << name;
    EXPECT_TRUE(std::equal(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n), result.tokens.begin()))
        << name << ": " << result.text;
    if (!is_whole) continue;
    EXPECT_EQ(result.tokens, ids) << name;
    EXPECT_EQ(result.text, answer["text"].get<std::string>()) << name;
    EXPECT_EQ(result.finish == FinishReason::stop, answer["stopped"].get<bool>()) << name;
  }
  EXPECT_GE(n_whole, 18);
}

INSTANTIATE_TEST_SUITE_P(Files, TinyGreedy, ::testing::Values("f16", "q4_0"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace kz::testing
