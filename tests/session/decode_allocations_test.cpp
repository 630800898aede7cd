// Decoding allocates nothing: this program counts every allocation of the process while tokens are decoded.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "engine/sampler.h"
#include "support/engines.h"

namespace {

std::atomic<bool> is_counting{false};
std::atomic<int64_t> n_allocations{0};

void count() {
  if (is_counting.load(std::memory_order_relaxed)) n_allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

#if defined(__GLIBC__)
// glibc's own entry points stay reachable when a program replaces the public ones; operator new calls malloc.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t n, size_t size);
void* __libc_realloc(void* p, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  count();
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  count();
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t size) {
  count();
  return __libc_realloc(p, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
}
#else
// Elsewhere the C++ operators alone are counted.
void* operator new(size_t size) {
  count();
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
#endif

namespace kz::testing {
namespace {

/// Allocations while `action` runs.
template <class Action>
int64_t allocations_of(Action&& action) {
  n_allocations = 0;
  is_counting = true;
  action();
  is_counting = false;
  return n_allocations;
}

TEST(DecodeAllocations, TheCounterCounts) {
  EXPECT_GE(allocations_of([] { std::vector<int>(1000).swap(*std::make_unique<std::vector<int>>()); }), 1);
}

class DecodeAllocations : public ::testing::TestWithParam<std::pair<std::string, std::string>> {};

TEST_P(DecodeAllocations, AreZero) {
  const auto& [path, activations] = GetParam();
  const auto engine = open_engine(path, "cpu", 2, activations);
  SessionOptions options;
  options.n_ctx = 700;
  const auto session = engine->open_session(options);
  std::vector<int32_t> tokens;
  tokens.reserve(700);
  for (int32_t i = 0; i < 240; ++i) tokens.push_back(300 + i % 90);
  session->sync(tokens);
  const auto n_vocab = static_cast<int64_t>(session->logits().size());

  SamplerParams params;  // all filters on
  Sampler sampler(n_vocab);
  sampler.start(params, 7, {});
  SamplerParams open;  // no filter: the whole vocabulary is weighed
  open.top_k = 0;
  open.top_p = 0.99;
  open.min_p = 0;
  Sampler wide(n_vocab);
  wide.start(open, 7, {});

  const auto step = [&] {
    wide.sample(session->logits());
    tokens.push_back(sampler.sample(session->logits()));
    session->sync(tokens);
  };
  step();
  // Past position 256, so that a new KV block is taken on the way.
  const int64_t n = allocations_of([&] {
    for (int i = 0; i < 40; ++i) step();
  });
  EXPECT_EQ(n, 0);
  EXPECT_EQ(session->history().size(), 281u);
}

INSTANTIATE_TEST_SUITE_P(Models, DecodeAllocations,
                         ::testing::Values(std::pair(tiny_q4_0(), std::string("f32")),
                                           std::pair(tiny_q4_0(), std::string("q8")),
                                           std::pair(data("oracle/llama.f16.gguf"), std::string("f32")),
                                           std::pair(data("oracle/qwen3.f16.gguf"), std::string("f32"))),
                         [](const auto& one) { return "case_" + std::to_string(one.index); });

TEST(DecodeAllocations, GenerateAllocatesOnlyForText) {
  const auto engine = open_engine(tiny_q4_0(), "cpu", 2, "q8");
  const auto session = engine->open_session({});
  const auto prompt = engine->chatml_prompt("Tell me a story about a fox.", "", false);
  std::vector<int64_t> per_step;
  per_step.reserve(1000);
  GenerateOptions options = greedy(60);
  options.on_text = [&](std::string_view) {
    per_step.push_back(n_allocations.exchange(0));
    is_counting = true;
    return true;
  };
  session->generate(prompt, options);
  is_counting = false;
  ASSERT_GT(per_step.size(), 30u);
  int64_t total = 0;
  for (size_t i = 1; i < per_step.size(); ++i) total += per_step[i];
  // The answer's text grows by doubling, and a piece longer than a short string takes one; never one per token.
  EXPECT_LE(total, static_cast<int64_t>(per_step.size()) / 3);
}

}  // namespace
}  // namespace kz::testing
