// The end of the context, bad prompts, cancellation.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/engines.h"
#include "support/numbers.h"

namespace kz::testing {
namespace {

using Tokens = std::vector<int32_t>;

Tokens text(size_t n) {
  Tokens tokens(n);
  for (size_t i = 0; i < n; ++i) tokens[i] = static_cast<int32_t>(300 + (i * 37) % 900);
  return tokens;
}

GenerateOptions endless() {
  GenerateOptions options = greedy(-1);
  options.sampler.ignore_eos = true;
  return options;
}

class Limits : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Engine> engine_ = open_engine(GetParam());
};

// Cases B129 and B173.
TEST_P(Limits, ThePromptMayFillTheContext) {
  for (const size_t n : {size_t{127}, size_t{128}}) {
    const auto session = engine_->open_session(f32_session(128));
    const GenerateResult result = session->generate(text(n), endless());
    EXPECT_EQ(result.tokens.size(), 128 - n);
    EXPECT_EQ(result.finish, FinishReason::context);
  }
  const auto session = engine_->open_session(f32_session(128));
  const GenerateResult result = session->generate(text(106), endless());
  EXPECT_EQ(result.tokens.size(), 22u);
  EXPECT_EQ(result.finish, FinishReason::context);
  EXPECT_EQ(finish_reason_name(result.finish), "context");
}

TEST_P(Limits, ALongerPromptIsRefusedWithBothNumbers) {
  const auto session = engine_->open_session(f32_session(128));
  session->sync(text(50));
  for (const size_t n : {size_t{129}, size_t{140}}) {
    for (const bool generates : {false, true}) {
      try {
        generates ? static_cast<void>(session->generate(text(n), endless()))
                  : static_cast<void>(session->sync(text(n)));
        FAIL();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_argument);
        const std::string message = error.what();
        EXPECT_NE(message.find(std::to_string(n)), std::string::npos) << message;
        EXPECT_NE(message.find("128"), std::string::npos) << message;
      }
    }
  }
  EXPECT_EQ(session->history().size(), 50u);  // unchanged
  EXPECT_EQ(session->sync(text(50)), 50);
}

TEST_P(Limits, ManyTurnsEndWithAReason) {
  const auto session = engine_->open_session(f32_session(200, 32));
  Tokens prompt = text(20);
  FinishReason finish = FinishReason::length;
  for (int turn = 0; turn < 100 && finish == FinishReason::length; ++turn) {
    GenerateOptions options = endless();
    options.n_predict = 7;
    const GenerateResult result = session->generate(prompt, options);
    finish = result.finish;
    prompt.insert(prompt.end(), result.tokens.begin(), result.tokens.end());
  }
  EXPECT_EQ(finish, FinishReason::context);
  EXPECT_EQ(prompt.size(), 200u);
}

TEST_P(Limits, BadIdsAreNamed) {
  const auto session = engine_->open_session(f32_session());
  const auto message_of = [&](const Tokens& tokens) -> std::string {
    try {
      session->sync(tokens);
      return "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_argument);
      return error.what();
    }
  };
  EXPECT_NE(message_of({}).find("empty"), std::string::npos);
  EXPECT_NE(message_of({5, -1, 7}).find("token 1 is -1"), std::string::npos);
  EXPECT_NE(message_of({5, 1600}).find("token 1 is 1600"), std::string::npos);
  EXPECT_NE(message_of({INT32_MAX}).find("2147483647"), std::string::npos);
  EXPECT_THROW(engine_->evaluate({}, f32_session(), {}), Error);
  EXPECT_THROW(engine_->evaluate(Tokens{1600}, f32_session(), {}), Error);
  session->sync(Tokens{0, 1599});
}

TEST_P(Limits, SyncCanBeCancelledAndResumed) {
  const auto session = engine_->open_session(f32_session(4096, 1));
  const Tokens tokens = text(3000);
  std::atomic<bool> is_done{false};
  std::thread canceller([&] {
    while (!is_done) {
      session->cancel();
      std::this_thread::yield();
    }
  });
  try {
    session->sync(tokens);
    ADD_FAILURE() << "3000 steps ran in spite of cancel()";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::cancelled) << error.what();
  }
  is_done = true;
  canceller.join();
  EXPECT_LT(session->history().size(), tokens.size());
  EXPECT_TRUE(session->logits().empty());

  const Tokens shorter(tokens.begin(), tokens.begin() + 60);
  session->sync(shorter);
  const auto cold = engine_->open_session(f32_session());
  cold->sync(shorter);
  EXPECT_TRUE(same_bits(session->logits(), cold->logits()));
}

TEST_P(Limits, GenerateCanBeCancelledFromAnotherThread) {
  const auto session = engine_->open_session(f32_session(4096));
  std::atomic<int> n_calls{0};
  std::thread canceller([&] {
    while (n_calls < 3) std::this_thread::yield();
    session->cancel();
  });
  GenerateOptions options = endless();
  options.show_special = true;
  options.on_prompt_done = [&] { n_calls = 1; };
  options.on_text = [&](std::string_view) {
    ++n_calls;
    return true;
  };
  const GenerateResult result = session->generate(text(20), options);
  canceller.join();
  EXPECT_EQ(result.finish, FinishReason::cancelled);
  EXPECT_LT(result.tokens.size(), 4000u);
  const GenerateResult again = session->generate(text(20), greedy(5));
  const GenerateResult cold = engine_->open_session(f32_session())->generate(text(20), greedy(5));
  EXPECT_EQ(again.tokens, cold.tokens);
}

INSTANTIATE_TEST_SUITE_P(Models, Limits, ::testing::Values(tiny_q4_0(), data("oracle/llama.f16.gguf")),
                         [](const auto& one) { return one.index == 0 ? "hybrid" : "attention"; });

}  // namespace
}  // namespace kz::testing
