// Two public models against their float32 oracles. Skipped, saying so, where the files are not (./kz fetches them).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "real/models.h"
#include "support/engines.h"
#include "support/numbers.h"

namespace kz::testing {
namespace {

using Json = nlohmann::json;
using Tokens = std::vector<int32_t>;

struct Subject {
  const char* name;   // of its vectors
  const char* label;  // of the test
  const char* file;
  // Class q8 against the float32 oracle: mean KL, share of equal first tokens, gap above which they must be equal.
  double mean_kl, equal_share, gap;
};

class Real : public ::testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    const std::string path = cached(GetParam().file);
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent: ./kz run --model NAME fetches it";
    engine_ = open_engine(path);
  }
  Json vectors(const std::string& kind) const {
    return Json::parse(read_bytes(data(std::string("real/") + GetParam().name + "." + kind + ".json")));
  }
  SessionOptions kv(const char* type) const {
    SessionOptions options = f32_session(1024);
    options.key_type = options.value_type = type;
    return options;
  }

  std::unique_ptr<Engine> engine_;
};

TEST_P(Real, TokenizesAsTheOracle) {
  const Json oracle = vectors("oracle");
  EXPECT_EQ(engine_->tokenize(oracle["text"].get<std::string>()), oracle["ids"].get<Tokens>());
  for (const Json& run : oracle["greedy"]) {
    EXPECT_EQ(engine_->tokenize(run["prompt"].get<std::string>(), {.parse_special = true}),
              run["prompt_ids"].get<Tokens>());
  }
}

/// Tolerances of a path with float32 activations: relative L2 1e-4, each logit 2e-3, logsumexp 1e-3, argmax wherever
/// the first two are more than 0.005 apart. The oracle itself is within 8.5e-6 of float64.
TEST_P(Real, RowsEqualTheOracle) {
  const Json oracle = vectors("oracle");
  const auto rows = all_rows(*engine_, oracle["ids"].get<Tokens>(), f32_session());
  const auto positions = oracle["rows_positions"].get<std::vector<size_t>>();
  const auto n_vocab = oracle["n_vocab"].get<size_t>();
  const std::vector<float> wanted = read_floats(data(std::string("real/") + GetParam().name + ".rows.f32"));
  ASSERT_EQ(wanted.size(), positions.size() * n_vocab);
  for (size_t i = 0; i < positions.size(); ++i) {
    const std::span<const float> row = std::span(wanted).subspan(i * n_vocab, n_vocab);
    ASSERT_EQ(rows[positions[i]].size(), n_vocab);
    EXPECT_LT(relative_rms(rows[positions[i]], row), 1e-4) << "position " << positions[i];
    double worst = 0;
    for (size_t id = 0; id < n_vocab; ++id) {
      worst = std::max(worst, std::abs(static_cast<double>(row[id]) - static_cast<double>(rows[positions[i]][id])));
    }
    EXPECT_LT(worst, 2e-3) << "position " << positions[i];
  }
  ASSERT_EQ(rows.size(), oracle["positions"].size());
  for (size_t p = 0; p < rows.size(); ++p) {
    const Json& position = oracle["positions"][p];
    EXPECT_NEAR(log_sum_exp(rows[p]), position["logsumexp"].get<double>(), 1e-3) << "position " << p;
    for (const Json& entry : position["top8"]) {
      EXPECT_NEAR(rows[p][entry[0].get<size_t>()], entry[1].get<double>(), 2e-3) << "position " << p;
    }
    if (position["gap"].get<double>() > 0.005) {
      EXPECT_EQ(argmax(rows[p]), position["top8"][0][0].get<int32_t>()) << "position " << p;
    }
  }
}

/// Compared up to the first near-tie; the oracle's text does not stop at end tokens, ours is read step by step.
TEST_P(Real, ContinuesAsTheOracle) {
  const auto session = engine_->open_session(f32_session());
  const Json oracle = vectors("oracle");
  for (const Json& run : oracle["greedy"]) {
    Tokens tokens = run["prompt_ids"].get<Tokens>();
    const auto ids = run["ids"].get<Tokens>();
    const auto gaps = run["gap"].get<std::vector<double>>();
    size_t n_compared = 0;
    for (size_t step = 0; step < ids.size() && gaps[step] > 0.005; ++step, ++n_compared) {
      session->sync(tokens);
      ASSERT_EQ(argmax(session->logits()), ids[step]) << run["name"] << " step " << step;
      tokens.push_back(ids[step]);
    }
    EXPECT_GE(n_compared, 8u) << run["name"];
    if (run["stop_step"].is_null()) continue;
    const GenerateResult result = session->generate(run["prompt_ids"].get<Tokens>(), greedy(48));
    EXPECT_EQ(result.text, run["text_until_stop"].get<std::string>());
    EXPECT_EQ(result.finish, FinishReason::stop);
    EXPECT_EQ(result.tokens.size(), run["stop_step"].get<size_t>());
  }
}

/// Rounded keys and values: mean KL against float32 ones.
TEST_P(Real, KvTypesStayClose) {
  const Tokens ids = vectors("oracle")["ids"].get<Tokens>();
  const auto exact = all_rows(*engine_, ids, f32_session());
  for (const auto& [type, limit] : {std::pair{"f16", 1e-4}, std::pair{"q8_0", 2e-3}}) {
    double sum = 0;
    engine_->evaluate(ids, kv(type), [&](int64_t position, std::span<const float> row) {
      sum += kl_divergence(exact[static_cast<size_t>(position)], row);
    });
    const double mean = sum / static_cast<double>(ids.size());
    RecordProperty(std::string("mean_kl_") + type, std::to_string(mean));
    std::printf("%s: mean KL of %s keys and values %.3g\n", GetParam().name, type, mean);
    EXPECT_LT(mean, limit) << type;
    EXPECT_GT(mean, 0) << type;  // the type was used
  }
}

TEST_P(Real, PerplexityEqualsTheOracle) {
  const Json expected = vectors("perplexity");
  const PerplexityResult result =
      perplexity(*engine_, read_bytes(data("real/shakespeare-24k.txt")), 512, f32_session(), {});
  EXPECT_EQ(result.n_tokens, expected["n_tokens"].get<int64_t>());
  EXPECT_EQ(result.n_chunks, expected["n_chunks"].get<int64_t>());
  EXPECT_EQ(result.n_scored, expected["scored_tokens"].get<int64_t>());
  const double wanted = expected["f32"]["ppl"];
  std::printf("%s: perplexity %.5f +/- %.5f, expected %.5f\n", GetParam().name, result.perplexity,
              result.standard_error, wanted);
  EXPECT_NEAR(result.perplexity / wanted, 1, 2e-4);
  EXPECT_NEAR(result.standard_error / expected["f32"]["stderr"].get<double>(), 1, 1e-3);
  const auto running = expected["f32"]["running_ppl"].get<std::vector<double>>();
  for (size_t i = 0; i < running.size(); ++i) EXPECT_NEAR(result.running[i] / running[i], 1, 5e-4) << "chunk " << i;
}

/// 8-bit activations on packed weights, within what the quantised files of another engine reach on the same vectors.
TEST_P(Real, PackedProductsStayClose) {
  const Json oracle = vectors("oracle");
  const auto packed = open_engine(cached(GetParam().file), "cpu", 0, "q8");
  const Tokens ids = oracle["ids"].get<Tokens>();
  const auto exact = all_rows(*engine_, ids, f32_session());
  const auto rows = all_rows(*packed, ids, f32_session());
  double sum = 0;
  size_t n_equal = 0;
  for (size_t p = 0; p < rows.size(); ++p) {
    sum += kl_divergence(exact[p], rows[p]);
    const Json& position = oracle["positions"][p];
    const bool equal = argmax(rows[p]) == position["top8"][0][0].get<int32_t>();
    n_equal += equal ? 1 : 0;
    if (position["gap"].get<double>() > GetParam().gap) {
      EXPECT_TRUE(equal) << "position " << p;
    }
  }
  const double mean = sum / static_cast<double>(rows.size());
  std::printf("%s: mean KL of class q8 %.3g, first token equal at %zu of %zu\n", GetParam().name, mean, n_equal,
              rows.size());
  EXPECT_LT(mean, GetParam().mean_kl);
  EXPECT_GT(mean, 0);
  EXPECT_GE(static_cast<double>(n_equal), GetParam().equal_share * static_cast<double>(rows.size()));
}

TEST_P(Real, PackedPerplexityStaysClose) {
  const Json expected = vectors("perplexity");
  const auto packed = open_engine(cached(GetParam().file), "cpu", 0, "q8");
  const PerplexityResult result =
      perplexity(*packed, read_bytes(data("real/shakespeare-24k.txt")), 512, f32_session(), {});
  const double wanted = expected["f32"]["ppl"];
  std::printf("%s: perplexity of class q8 %.4f, float32 %.4f\n", GetParam().name, result.perplexity, wanted);
  EXPECT_NEAR(result.perplexity / wanted, 1, 0.01);
  // Mean NLL of each chunk, from the running perplexities.
  const auto running = expected["f32"]["running_ppl"].get<std::vector<double>>();
  const auto chunk_nll = [](const std::vector<double>& ppl, size_t i) {
    const double n = static_cast<double>(i);
    return (n + 1) * std::log(ppl[i]) - (i == 0 ? 0 : n * std::log(ppl[i - 1]));
  };
  ASSERT_EQ(running.size(), result.running.size());
  for (size_t i = 0; i < running.size(); ++i) {
    EXPECT_NEAR(chunk_nll(result.running, i), chunk_nll(running, i), 0.02) << "chunk " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Real,
                         ::testing::Values(Subject{"smollm2", "smollm2", kSmolLm2File, 0.008, 0.93, 0.8},
                                           Subject{"qwen2.5", "qwen2_5", kQwen25File, 0.003, 0.93, 0.4}),
                         [](const auto& one) { return std::string(one.param.label); });

}  // namespace
}  // namespace kz::testing
