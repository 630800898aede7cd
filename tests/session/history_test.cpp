// sync(): whatever a session went through, its logits are those of a cold run, bit for bit (cpu backend).
#include <gtest/gtest.h>

#include <random>

#include "support/engines.h"
#include "support/numbers.h"

namespace kz::testing {
namespace {

struct Subject {
  const char* name;
  std::string path;
  const char* kv_type;
  std::string activations;
};

class History : public ::testing::TestWithParam<Subject> {
 protected:
  SessionOptions options(int64_t n_batch) const {
    SessionOptions o = f32_session(640, n_batch);
    o.key_type = o.value_type = GetParam().kv_type;
    return o;
  }
};

using Tokens = std::vector<int32_t>;

/// Random text, and edits of it as conversations have them.
class Editor {
 public:
  explicit Editor(uint32_t seed) : random_(seed) {}
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  Tokens text(int n) {
    Tokens tokens(static_cast<size_t>(n));
    for (int32_t& token : tokens) token = below(1500);
    return tokens;
  }
  void edit(Tokens& tokens) {
    switch (below(5)) {
      case 0:
        append(tokens, 1);
        break;
      case 1:
        append(tokens, 1 + below(90));
        break;
      case 2:
        tokens.resize(1 + static_cast<size_t>(below(static_cast<int>(tokens.size()))));
        break;
      case 3:
        tokens[static_cast<size_t>(below(static_cast<int>(tokens.size())))] = below(1500);
        break;
      default:
        break;  // the same again
    }
    if (tokens.size() > 600) tokens.resize(1 + static_cast<size_t>(below(600)));
  }

 private:
  void append(Tokens& tokens, int n) {
    const Tokens more = text(n);
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  std::mt19937 random_;
};

TEST_P(History, EditsEqualColdRuns) {
  const auto engine = open_engine(GetParam().path, "cpu", 0, GetParam().activations);
  const auto warm = engine->open_session(options(64));
  Editor editor(11);
  Tokens tokens = editor.text(270);
  for (int step = 0; step < 14; ++step) {
    warm->sync(tokens);
    ASSERT_TRUE(std::equal(tokens.begin(), tokens.end(), warm->history().begin(), warm->history().end()));
    const auto cold = engine->open_session(options(1 + editor.below(200)));
    EXPECT_EQ(cold->sync(tokens), 0);
    ASSERT_TRUE(same_bits(warm->logits(), cold->logits())) << "step " << step << ", " << tokens.size() << " tokens";
    editor.edit(tokens);
  }
}

TEST_P(History, DecodedTokensEqualPrefilledOnes) {
  const auto engine = open_engine(GetParam().path, "cpu", 0, GetParam().activations);
  const auto stepwise = engine->open_session(options(512));
  Editor editor(5);
  const Tokens tokens = editor.text(300);
  stepwise->sync(std::span(tokens).first(240));
  for (size_t n = 241; n <= tokens.size(); ++n) EXPECT_EQ(stepwise->sync(std::span(tokens).first(n)), n - 1);
  const auto cold = engine->open_session(options(512));
  cold->sync(tokens);
  EXPECT_TRUE(same_bits(stepwise->logits(), cold->logits()));
}

INSTANTIATE_TEST_SUITE_P(Models, History,
                         ::testing::Values(Subject{"tiny", tiny_q4_0(), "f32", "q8"},
                                           Subject{"tiny_f32", tiny_q4_0(), "f32", "f32"},
                                           Subject{"tiny_f16_kv", tiny_q4_0(), "f16", "q8"},
                                           Subject{"llama", data("oracle/llama.f16.gguf"), "f32", "f32"},
                                           Subject{"qwen2_f16_kv", data("oracle/qwen2.f16.gguf"), "f16", "q8"}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(Reuse, AnAttentionModelKeepsTheCommonPrefix) {
  const auto engine = open_engine(data("oracle/llama.f16.gguf"));
  const auto session = engine->open_session(f32_session());
  const Tokens tokens = Editor(3).text(100);
  EXPECT_EQ(session->sync(tokens), 0);
  EXPECT_EQ(session->sync(tokens), 100);                      // nothing to do
  EXPECT_EQ(session->sync(std::span(tokens).first(40)), 39);  // the last one again, for its logits
  Tokens other(tokens.begin(), tokens.begin() + 30);
  other.push_back(tokens[30] + 1);
  EXPECT_EQ(session->sync(other), 30);
}

TEST(Reuse, AHybridModelKeepsWhatItContinues) {
  const auto engine = open_engine(tiny_q4_0());
  const auto session = engine->open_session(f32_session());
  const Tokens tokens = Editor(3).text(100);
  EXPECT_EQ(session->sync(std::span(tokens).first(60)), 0);
  EXPECT_EQ(session->sync(tokens), 60);
  EXPECT_EQ(session->sync(tokens), 100);
  EXPECT_EQ(session->sync(std::span(tokens).first(40)), 0);  // the state cannot be cut back
}

TEST(Reuse, TheNextTurnEvaluatesOnlyNewTokens) {
  const auto engine = open_engine(tiny_q4_0());
  const auto session = engine->open_session(f32_session());
  Tokens prompt = engine->chatml_prompt("Hello, my name is Nora.", "", false);
  const GenerateResult first = session->generate(prompt, greedy(30));
  ASSERT_EQ(first.finish, FinishReason::stop);
  prompt.insert(prompt.end(), first.tokens.begin(), first.tokens.end());
  const Tokens more = engine->tokenize(
      "<|im_end|>\n<|im_start|>user\nWhat is my name?<|im_end|>\n<|im_start|>assistant\n", {.parse_special = true});
  prompt.insert(prompt.end(), more.begin(), more.end());
  const GenerateResult second = session->generate(prompt, greedy(30));
  EXPECT_EQ(second.n_prompt, static_cast<int64_t>(more.size()));
  EXPECT_EQ(second.n_reused, static_cast<int64_t>(prompt.size() - more.size()));
  const GenerateResult cold = engine->open_session(f32_session())->generate(prompt, greedy(30));
  EXPECT_EQ(second.tokens, cold.tokens);
}

TEST(Reuse, EvaluateEqualsSync) {
  const auto engine = open_engine(tiny_q4_0());
  const Tokens tokens = Editor(9).text(70);
  const auto rows = all_rows(*engine, tokens, f32_session(1024, 16));
  ASSERT_EQ(rows.size(), tokens.size());
  const auto session = engine->open_session(f32_session());
  for (const size_t n : {size_t{1}, size_t{17}, size_t{70}}) {
    session->sync(std::span(tokens).first(n));
    EXPECT_TRUE(same_bits(session->logits(), rows[n - 1]));
  }
  int64_t next = 31;
  engine->evaluate(
      tokens, f32_session(1024, 16),
      [&](int64_t position, std::span<const float> row) {
        EXPECT_EQ(position, next++);
        EXPECT_TRUE(same_bits(row, rows[static_cast<size_t>(position)]));
      },
      31);
  EXPECT_EQ(next, 70);
}

}  // namespace
}  // namespace kz::testing
