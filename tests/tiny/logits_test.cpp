// The trained model's logits against the float64 forward, for every file type.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "support/numbers.h"
#include "tiny/variants.h"

namespace kz::testing {
namespace {

using Case = std::tuple<std::string, std::string>;  // variant, backend

class TinyLogits : public ::testing::TestWithParam<Case> {};

TEST_P(TinyLogits, EqualTheVectors) {
  const auto& [variant, backend] = GetParam();
  const auto expected = nlohmann::json::parse(read_bytes(data("tiny/expected.json")));
  const auto ids = expected["ids"].get<std::vector<int32_t>>();
  const auto positions = expected["positions"].get<std::vector<size_t>>();
  const auto n_vocab = expected["vocab"].get<size_t>();
  const std::vector<float> wanted = read_floats(data("tiny/kazeia-tiny-" + variant + ".logits.f32"));
  ASSERT_EQ(wanted.size(), positions.size() * n_vocab);

  const auto engine = open_engine(tiny_variant(variant), backend);
  EXPECT_EQ(engine->tokenize(expected["prompt"].get<std::string>(), {.parse_special = true}), ids);
  const auto rows = all_rows(*engine, ids, f32_session());
  ASSERT_EQ(rows.size(), ids.size());
  const double limit = backend == "reference" ? 5e-5 : 2e-4;
  double worst = 0;
  for (size_t i = 0; i < positions.size(); ++i) {
    const double error = relative_rms(rows[positions[i]], std::span(wanted).subspan(i * n_vocab, n_vocab));
    worst = std::max(worst, error);
    EXPECT_LE(error, limit) << "position " << positions[i];
  }
  RecordProperty("worst_relative_rms", std::to_string(worst));
  const auto argmaxes = expected["files"]["kazeia-tiny-" + variant + ".gguf"]["argmax"].get<std::vector<int32_t>>();
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(argmax(rows[i]), argmaxes[i]) << "position " << i;
}

INSTANTIATE_TEST_SUITE_P(Files, TinyLogits,
                         ::testing::Combine(::testing::Values("f16", "q4_0", "q8_0", "q4_k_m"),
                                            ::testing::Values("reference", "cpu")),
                         [](const auto& one) { return std::get<0>(one.param) + "_" + std::get<1>(one.param); });

}  // namespace
}  // namespace kz::testing
