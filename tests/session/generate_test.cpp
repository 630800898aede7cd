// generate(): seeds, stop strings, ends, streams.
#include <gtest/gtest.h>

#include <set>

#include "support/engines.h"
#include "support/numbers.h"

namespace kz::testing {
namespace {

using Tokens = std::vector<int32_t>;

class Generate : public ::testing::Test {
 protected:
  Tokens ask(const std::string& text) const { return engine_->chatml_prompt(text, "", false); }
  GenerateResult answer(const std::string& text, const GenerateOptions& options) const {
    return engine_->open_session(f32_session())->generate(ask(text), options);
  }
  static GenerateOptions sampled(int64_t seed, int64_t n_predict = 24) {
    GenerateOptions options;
    options.sampler.temperature = 1.2;
    options.sampler.top_k = 0;
    options.sampler.top_p = 1;
    options.sampler.min_p = 0;
    options.sampler.seed = seed;
    options.n_predict = n_predict;
    return options;
  }

  std::unique_ptr<Engine> engine_ = open_engine(tiny_q4_0());
};

// Case B111.
TEST_F(Generate, SameSeedSameText) {
  const Tokens prompt = ask("Tell me a story about a fox.");
  const auto session = engine_->open_session(f32_session());
  const GenerateResult first = session->generate(prompt, sampled(42));
  EXPECT_EQ(first.seed, 42);
  const GenerateResult warm = session->generate(prompt, sampled(42));
  session->generate(ask("What is the capital of Peru?"), sampled(7));
  const GenerateResult after_another = session->generate(prompt, sampled(42));
  const GenerateResult cold = engine_->open_session(f32_session(1024, 7))->generate(prompt, sampled(42));
  const GenerateResult threads =
      open_engine(tiny_q4_0(), "cpu", 3)->open_session(f32_session())->generate(prompt, sampled(42));
  for (const GenerateResult* other : {&warm, &after_another, &cold, &threads}) {
    EXPECT_EQ(other->tokens, first.tokens);
    EXPECT_EQ(other->text, first.text);
  }
  std::set<Tokens> answers;
  for (int64_t seed = 0; seed < 5; ++seed) answers.insert(session->generate(prompt, sampled(seed)).tokens);
  EXPECT_GE(answers.size(), 3u);
}

TEST_F(Generate, AFreshSeedIsReported) {
  const GenerateResult result = answer("Tell me a story about a fox.", sampled(-1));
  EXPECT_GE(result.seed, 0);
  EXPECT_EQ(answer("Tell me a story about a fox.", sampled(result.seed)).tokens, result.tokens);
}

// Cases B087 and B089: every stop string of the answer, wherever tokens end.
TEST_F(Generate, StopsAtEveryStopString) {
  const std::string question = "What is the capital of Peru?";
  const std::string whole = answer(question, greedy(30)).text;
  ASSERT_EQ(whole, "The capital of Peru is Lima.");
  const auto session = engine_->open_session(f32_session());
  for (size_t begin = 0; begin < whole.size(); begin += 3) {
    for (const size_t length : {size_t{1}, size_t{2}, size_t{5}, size_t{9}}) {
      const std::string stop = whole.substr(begin, length);
      GenerateOptions options = greedy(30);
      options.stop = {"never comes", stop};
      std::string streamed;
      options.on_text = [&](std::string_view text) {
        streamed += text;
        return true;
      };
      const GenerateResult result = session->generate(ask(question), options);
      EXPECT_EQ(result.text, whole.substr(0, whole.find(stop))) << "stop '" << stop << "'";
      EXPECT_EQ(streamed, result.text);
      EXPECT_EQ(result.finish, FinishReason::stop);
    }
  }
}

TEST_F(Generate, AStopStringThatDoesNotCompleteIsShown) {
  GenerateOptions options = greedy(30);
  options.stop = {"Lima.x", "is Lima!"};
  EXPECT_EQ(answer("What is the capital of Peru?", options).text, "The capital of Peru is Lima.");
  options.stop = {""};
  EXPECT_THROW(answer("What is the capital of Peru?", options), Error);
}

// Case B085: the limit in the middle of a character still gives valid UTF-8, and the stream equals the text.
TEST_F(Generate, EveryLengthGivesWholeCharacters) {
  const Tokens ids = engine_->tokenize("caf\xc3\xa9 \xe4\xb8\xad \xf0\x9f\xa6\x99");
  const auto session = engine_->open_session(f32_session());
  for (int64_t seed = 0; seed < 12; ++seed) {
    GenerateOptions options = sampled(seed, 1 + seed);
    options.sampler.temperature = 20;  // any byte may come
    std::string streamed;
    options.on_text = [&](std::string_view text) {
      streamed += text;
      EXPECT_NE(static_cast<unsigned char>(text[0]) & 0xc0, 0x80);  // never begins inside a character
      return true;
    };
    const GenerateResult result = session->generate(ids, options);
    EXPECT_EQ(streamed, result.text);
    EXPECT_EQ(result.finish == FinishReason::length, result.tokens.size() == static_cast<size_t>(1 + seed));
  }
}

TEST_F(Generate, TheEndTokenIsNoText) {
  GenerateOptions options = greedy(30);
  options.show_special = true;
  const GenerateResult result = answer("What is the capital of Peru?", options);
  EXPECT_EQ(result.text, "The capital of Peru is Lima.");
  EXPECT_EQ(result.finish, FinishReason::stop);
  for (const int32_t end : engine_->info().end_tokens) {
    EXPECT_EQ(std::count(result.tokens.begin(), result.tokens.end(), end), 0);
  }
}

// Case B113: every end token is suppressed, not one of them.
TEST_F(Generate, IgnoreEosRunsToTheLimit) {
  ASSERT_GE(engine_->info().end_tokens.size(), 2u);
  for (int64_t seed = 0; seed < 4; ++seed) {
    GenerateOptions options = sampled(seed, 60);
    options.sampler.ignore_eos = true;
    const GenerateResult result = answer("What is the capital of Peru?", options);
    EXPECT_EQ(result.finish, FinishReason::length);
    EXPECT_EQ(result.tokens.size(), 60u);
    for (const int32_t end : engine_->info().end_tokens) {
      EXPECT_EQ(std::count(result.tokens.begin(), result.tokens.end(), end), 0);
    }
  }
}

TEST_F(Generate, NothingAskedNothingSaid) {
  const GenerateResult result = answer("What is the capital of Peru?", greedy(0));
  EXPECT_TRUE(result.tokens.empty());
  EXPECT_TRUE(result.text.empty());
  EXPECT_EQ(result.finish, FinishReason::length);
}

TEST_F(Generate, TheCallbackCanStop) {
  GenerateOptions options = greedy(30);
  int n_calls = 0;
  options.on_text = [&](std::string_view) { return ++n_calls < 3; };
  const GenerateResult result = answer("What is the capital of Peru?", options);
  EXPECT_EQ(result.finish, FinishReason::cancelled);
  EXPECT_EQ(n_calls, 3);
}

TEST_F(Generate, AThrowingCallbackLeavesTheSessionUsable) {
  const auto session = engine_->open_session(f32_session());
  GenerateOptions options = greedy(30);
  options.on_text = [](std::string_view) -> bool { throw std::runtime_error("client gone"); };
  EXPECT_THROW(session->generate(ask("Tell me a story about a fox."), options), std::runtime_error);
  EXPECT_EQ(session->generate(ask("What is the capital of Peru?"), greedy(30)).text, "The capital of Peru is Lima.");
}

// Case B109 through the API.
TEST_F(Generate, BadParametersAreRefusedBeforeAnythingRuns) {
  const auto session = engine_->open_session(f32_session());
  const auto refused = [&](const std::function<void(GenerateOptions&)>& change, const std::string& field) {
    GenerateOptions options;
    change(options);
    try {
      session->generate(ask("Hello!"), options);
      ADD_FAILURE() << field << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_argument);
      EXPECT_NE(std::string(error.what()).find(field), std::string::npos) << error.what();
    }
  };
  refused([](auto& o) { o.sampler.temperature = 999999; }, "temperature is 999999");
  refused([](auto& o) { o.sampler.top_p = -1; }, "top-p is -1");
  refused([](auto& o) { o.sampler.top_k = -5; }, "top-k is -5");
  refused([](auto& o) { o.n_predict = -2; }, "-2");
  EXPECT_TRUE(session->history().empty());
}

}  // namespace
}  // namespace kz::testing
