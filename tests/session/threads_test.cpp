// Sessions of one engine on several threads, and engines with different teams.
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "core/affinity.h"
#include "support/engines.h"
#include "support/numbers.h"

namespace kz::testing {
namespace {

using Tokens = std::vector<int32_t>;

constexpr std::array kQuestions = {"What is the capital of Peru?", "Tell me a story about a fox.",
                                   "What is 17 plus 25?", "Who are you?"};

// Case B121: sessions do not see each other.
TEST(Threads, SessionsOnManyThreadsEqualTheirLonelyRuns) {
  const auto engine = open_engine(tiny_q4_0(), "cpu", 2, "q8");
  std::array<Tokens, kQuestions.size()> prompts;
  std::array<Tokens, kQuestions.size()> wanted;
  for (size_t i = 0; i < prompts.size(); ++i) {
    prompts[i] = engine->chatml_prompt(kQuestions[i], "", false);
    wanted[i] = engine->open_session(f32_session())->generate(prompts[i], greedy(24)).tokens;
  }
  std::array<Tokens, kQuestions.size()> got;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < prompts.size(); ++i) {
    threads.emplace_back([&, i] {
      // Opening, reading and placement run beside the forwards of others.
      const auto session = engine->open_session(f32_session(512, static_cast<int64_t>(3 + 5 * i)));
      session->generate(prompts[(i + 1) % prompts.size()], greedy(4));
      got[i] = session->generate(prompts[i], greedy(24)).tokens;
      EXPECT_FALSE(engine->placement().empty());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(got[i], wanted[i]) << kQuestions[i];
}

// Case B171: the same model opened on many threads at once, used and closed while others still load.
TEST(Threads, ConcurrentLoads) {
  const auto lonely = open_engine(tiny_q4_0(), "cpu", 1);
  const Tokens prompt = lonely->chatml_prompt(kQuestions[0], "", false);
  const Tokens wanted = lonely->open_session(f32_session())->generate(prompt, greedy(8)).tokens;
  std::array<std::array<Tokens, 3>, 4> got;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < got.size(); ++i) {
    threads.emplace_back([&, i] {
      for (Tokens& tokens : got[i]) {
        const auto engine = open_engine(tiny_q4_0(), "cpu", 1 + static_cast<int>(i) % 2);
        tokens = engine->open_session(f32_session())->generate(prompt, greedy(8)).tokens;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& tries : got) {
    for (const Tokens& tokens : tries) EXPECT_EQ(tokens, wanted);
  }
}

TEST(Threads, InterleavedSessionsEqualTheirLonelyRuns) {
  const auto engine = open_engine(tiny_q4_0());
  const auto a = engine->open_session(f32_session());
  const auto b = engine->open_session(f32_session());
  const auto lonely = engine->open_session(f32_session());
  Tokens history_a = {300}, history_b = {900};
  for (int i = 0; i < 40; ++i) {
    a->sync(history_a);
    b->sync(history_b);
    history_a.push_back(300 + (i * 31) % 700);
    history_b.push_back(argmax(b->logits()));
  }
  history_b.pop_back();
  lonely->sync(history_b);
  EXPECT_TRUE(same_bits(b->logits(), lonely->logits()));
}

// Case B177: another team for every step, same bits.
TEST(Threads, TeamSizeDoesNotMatter) {
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<std::unique_ptr<Session>> sessions;
  for (const int n_threads : {1, 2, 3, 8}) {
    engines.push_back(open_engine(tiny_q4_0(), "cpu", n_threads, "q8"));
    EXPECT_EQ(engines.back()->n_threads(), n_threads);
    sessions.push_back(engines.back()->open_session(f32_session()));
  }
  Tokens tokens = engines[0]->chatml_prompt("Tell me a story about a fox.", "", false);
  for (int step = 0; step < 12; ++step) {
    for (const auto& session : sessions) {
      session->sync(tokens);
      ASSERT_TRUE(same_bits(session->logits(), sessions[0]->logits())) << "step " << step;
    }
    tokens.push_back(argmax(sessions[0]->logits()));
  }
}

TEST(Threads, PinnedRunsGiveTheSameAndLeaveTheCallerFree) {
  const std::vector<int> before = allowed_cores();
  EngineOptions options;
  options.model.path = tiny_q4_0();
  options.cores = before;
  const auto pinned = Engine::open(options);
  EXPECT_EQ(pinned->n_threads(), static_cast<int>(before.size()));
  const auto free = open_engine(tiny_q4_0(), "cpu", 2, "q8");
  const Tokens prompt = free->chatml_prompt(kQuestions[0], "", false);
  GenerateOptions generate = greedy(12);
  std::vector<int> during;
  generate.on_prompt_done = [&] { during = allowed_cores(); };
  EXPECT_EQ(pinned->open_session({})->generate(prompt, generate).tokens,
            free->open_session({})->generate(prompt, greedy(12)).tokens);
  EXPECT_EQ(during, std::vector<int>{before.front()});
  EXPECT_EQ(allowed_cores(), before);
  options.cores = {100000};
  EXPECT_THROW(Engine::open(options), Error);
}

}  // namespace
}  // namespace kz::testing
