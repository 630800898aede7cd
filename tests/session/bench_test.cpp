// Tests of speed on the built-in model: what is counted, what is refused, what stays the same.
#include <gtest/gtest.h>
#include <kazeia/bench.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "support/engines.h"

namespace kz::testing {
namespace {

BenchOptions few(int64_t repetitions = 2) {
  BenchOptions options;
  options.repetitions = repetitions;
  options.warm_up = false;
  return options;
}

TEST(Bench, NamesOfTests) {
  EXPECT_EQ((BenchTest{512, 0, 0}.name()), "pp512");
  EXPECT_EQ((BenchTest{0, 128, 4096}.name()), "tg128 @ d4096");
  EXPECT_EQ((BenchTest{512, 128, 0}.name()), "pp512+tg128");
}

TEST(Bench, CountsWhatATokenHasToRead) {
  const auto engine = open_engine(data("oracle/qwen3-yarn.f16.gguf"), "cpu", 1);
  const BenchResult zero = run_bench(*engine, {0, 3, 0}, few());
  const BenchResult deep = run_bench(*engine, {0, 3, 64}, few());
  ASSERT_EQ(zero.seconds.size(), 2u);
  for (const double seconds : zero.seconds) EXPECT_GT(seconds, 0);
  // Every matrix once per token, two bytes a weight; of the embedding table one row only, which is no product.
  const ModelInfo& info = engine->info();
  ASSERT_FALSE(info.tied);
  const int64_t attention = info.n_embd * (2 * info.n_heads + 2 * info.n_kv_heads) * info.key_dim;
  const int64_t layer = attention + 3 * info.n_embd * info.n_ff, head = info.n_embd * info.n_vocab;
  EXPECT_EQ(zero.weight_bytes, 3 * 2 * (info.n_layers * layer + head));
  EXPECT_EQ(deep.weight_bytes, zero.weight_bytes);
  // Keys and values as f16; 1 + 2 + 3 rows against 65 + 66 + 67.
  const int64_t row_bytes = info.n_attention_layers * info.n_kv_heads * 2 * (info.key_dim + info.value_dim);
  EXPECT_EQ(zero.kv_bytes, 6 * row_bytes);
  EXPECT_EQ(deep.kv_bytes, 198 * row_bytes);
  EXPECT_EQ(zero.state_bytes, 0);
  EXPECT_TRUE(zero.limits.empty());
}

TEST(Bench, APromptComputesLogitsOfItsLastTokenOnly) {
  const auto engine = open_engine(tiny_f16(), "cpu", 1);
  const ModelInfo& info = engine->info();
  const BenchResult one = run_bench(*engine, {1, 0, 0}, few(1)), two = run_bench(*engine, {2, 0, 0}, few(1));
  const int64_t head = info.n_embd * info.n_vocab;
  EXPECT_EQ(2 * (one.multiply_adds - head), two.multiply_adds - head);
  EXPECT_EQ(one.weight_bytes, two.weight_bytes);
}

TEST(Bench, LogitsAreTheSameForAllThreadCountsAndRepetitions) {
  for (const std::string activations : {"f32", "q8"}) {
    uint64_t prompt_hash = 0, decode_hash = 0;
    for (const int n_threads : {1, 2, 3}) {
      const auto engine = open_engine(tiny_q4_0(), "cpu", n_threads, activations);
      const BenchResult prompt = run_bench(*engine, {40, 0, 0}, few(2));
      const BenchResult decode = run_bench(*engine, {0, 8, 32}, few(3));
      EXPECT_TRUE(prompt.same_logits);
      EXPECT_TRUE(decode.same_logits);
      if (n_threads == 1) {
        prompt_hash = prompt.logits_hash;
        decode_hash = decode.logits_hash;
      }
      EXPECT_EQ(prompt.logits_hash, prompt_hash) << activations << ", " << n_threads << " threads";
      EXPECT_EQ(decode.logits_hash, decode_hash) << activations << ", " << n_threads << " threads";
      // 32 tokens and 8 more are the same history, whatever was timed.
      EXPECT_EQ(prompt_hash, decode_hash);
    }
  }
}

TEST(Bench, ProfileAddsUpToTheTime) {
  const auto engine = open_engine(tiny_q4_0(), "cpu", 1);
  BenchOptions options = few(1);
  options.profile = true;
  const BenchResult result = run_bench(*engine, {0, 4, 0}, options);
  double verbs = 0;
  int64_t bytes = 0;
  for (const KernelPlacement& line : result.profile.verbs) {
    EXPECT_GT(line.calls, 0) << line.verb;
    EXPECT_EQ(line.n_timed, line.calls) << line.verb;
    EXPECT_GT(line.seconds, 0) << line.verb;
    verbs += line.seconds;
    if (line.verb == "linear") bytes += line.bytes;
  }
  EXPECT_GT(verbs, 0);
  EXPECT_LE(verbs, result.profile.total_seconds);
  EXPECT_EQ(bytes, result.weight_bytes);
  // Timing ends with the profile.
  for (const KernelPlacement& line : run_bench(*engine, {0, 1, 0}, few(1)).profile.verbs) ADD_FAILURE() << line.verb;
  const auto before = engine->placement();
  run_bench(*engine, {0, 1, 0}, few(1));
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(engine->placement()[i].n_timed, before[i].n_timed);
}

TEST(Bench, RefusesWhatDoesNotFit) {
  const auto engine = open_engine(tiny_q4_0(), "cpu", 1);
  const auto text_of = [&](const BenchTest& test, const BenchOptions& options, ErrorCode code) {
    try {
      run_bench(*engine, test, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string text = text_of({0, 128, 4096}, few(), ErrorCode::bad_argument);
  EXPECT_NE(text.find("tg128 @ d4096"), std::string::npos) << text;
  EXPECT_NE(text.find("4224"), std::string::npos) << text;
  EXPECT_NE(text.find("4096"), std::string::npos) << text;
  EXPECT_NE(text_of({0, 0, 16}, few(), ErrorCode::bad_argument).find("nothing to measure"), std::string::npos);
  EXPECT_NE(text_of({-1, 2, 0}, few(), ErrorCode::bad_argument).find("-1"), std::string::npos);
  EXPECT_NE(text_of({1, 0, 0}, few(0), ErrorCode::bad_argument).find("0 repetitions"), std::string::npos);
  BenchOptions options = few();
  options.session.key_type = "q3";
  EXPECT_NE(text_of({1, 0, 0}, options, ErrorCode::bad_argument).find("q3"), std::string::npos);
}

TEST(Bench, StopsWhereItIsAsked) {
  const auto engine = open_engine(tiny_q4_0(), "cpu", 1);
  BenchOptions options = few(5);
  int n_calls = 0;
  options.on_repetition = [&n_calls] {
    if (++n_calls == 3) throw Error(ErrorCode::cancelled, "enough");
  };
  EXPECT_THROW(run_bench(*engine, {2, 0, 0}, options), Error);
  EXPECT_EQ(n_calls, 3);
}

TEST(Bench, FirstTokenAndMemory) {
  const auto engine = open_engine(tiny_q4_0(), "cpu", 1);
  EXPECT_GT(time_to_first_token(*engine, {}, 8), 0);
  EXPECT_THROW(time_to_first_token(*engine, {}, 5000), Error);
  const ProcessMemory memory = process_memory();
  EXPECT_GT(memory.anonymous_bytes, 0);
  EXPECT_GT(memory.file_bytes, 0);
  EXPECT_GE(memory.peak_bytes, memory.anonymous_bytes);
}

TEST(Bench, TheReferenceBackendHasNoLimits) {
  const auto engine = open_engine(tiny_q4_0(), "reference");
  EXPECT_THROW(LimitMeter{*engine}, Error);
  const BenchResult result = run_bench(*engine, {2, 0, 0}, few(1));
  EXPECT_EQ(result.weight_bytes, 0);
}

TEST(ModelFingerprint, FollowsKeysWeightsAndSize) {
  const std::string path = ::testing::TempDir() + "kz-fingerprint.gguf";
  const auto fingerprint = [&path](const std::function<void(std::string&)>& change) {
    std::ifstream in(tiny_q4_0(), std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    change(bytes);
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return model_fingerprint(*open_engine(path));
  };
  const std::string first = fingerprint([](std::string&) {});
  EXPECT_EQ(first.size(), 16u);
  EXPECT_EQ(first.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(model_fingerprint(*open_engine(tiny_q4_0())), first) << "another name, the same content";
  EXPECT_NE(fingerprint([](std::string& bytes) { bytes += 'a'; }), first);
  EXPECT_NE(fingerprint([](std::string& bytes) { bytes.back() = static_cast<char>(bytes.back() ^ 1); }), first);
  EXPECT_NE(fingerprint([](std::string& bytes) { bytes.at(bytes.find("Kazeia tiny")) = 'X'; }), first);
  EXPECT_NE(fingerprint([](std::string& bytes) {
              for (size_t i = bytes.size() / 2; i < bytes.size() / 2 + 200000; ++i)
                bytes[i] = static_cast<char>(bytes[i] ^ 1);
            }),
            first);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace kz::testing
