// Long texts on a small stack. There are no clocks here: an algorithm that is quadratic in a megabyte runs into the
// test runner's limit, a recursive one off its 256 KB of stack.
#include <gtest/gtest.h>
#include <pthread.h>

#include <exception>
#include <functional>

#include "vocabularies.h"

namespace kz {
namespace {

using testing::gpt2;
using testing::Ids;
using testing::qwen3;
using testing::qwen35;

constexpr size_t kMegabyte = size_t{1} << 20;

/// Runs on a thread with 256 KB of stack.
void on_small_stack(const std::function<void()>& action) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, size_t{256} << 10), 0);
  struct Job {
    const std::function<void()>& action;
    std::exception_ptr error;
  } job{action, nullptr};
  pthread_t thread;
  const auto run = [](void* data) -> void* {
    auto& mine = *static_cast<Job*>(data);
    try {
      mine.action();
    } catch (...) {
      mine.error = std::current_exception();
    }
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &job), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  if (job.error) std::rethrow_exception(job.error);
}

std::string repeated(std::string_view part, size_t n_bytes) {
  std::string text;
  while (text.size() + part.size() <= n_bytes) text += part;
  return text;
}

void expect_round_trip(const std::string& text) {
  for (const Tokenizer* t : {&qwen35(), &gpt2()}) {
    EXPECT_EQ(t->decode(t->encode(text, {.parse_special = true}), true), text) << text.substr(0, 20);
  }
}

TEST(Limits, LongRunsOfOneCharacter) {  // a recursive regular expression crashed on these
  on_small_stack([] {
    const std::string letters(43000, 'A'), characters = repeated("\xE4\xB8\xAD", 3 * 26000);
    expect_round_trip(letters);
    expect_round_trip(characters);
    EXPECT_EQ(qwen3().encode(letters).size(), 5375u);  // tokens of eight letters
  });
}

TEST(Limits, AMegabyteOfEverything) {
  (void)qwen3(), (void)qwen35(), (void)gpt2();
  on_small_stack([] {
    for (const std::string_view part :
         {"A",  "ab", "\xE4\xB8\xAD", " ",          "\n",   " \n",       "\r\n",     "\t", "1", "!", "a b ",
          "'s", "<",  "<|im_start|>", "<|im_start", "\x80", "\xE4\xB8 ", "\xC2\xA0", "1a", ". "}) {
      expect_round_trip(repeated(part, kMegabyte));
    }
  });
}

TEST(Limits, AMegabyteOfMixedText) {
  const std::string text = testing::mixed_text(kMegabyte, 9);
  on_small_stack([&] {
    EXPECT_EQ(gpt2().decode(gpt2().encode(text)), text);
    for (const Tokenizer* t : {&qwen3(), &qwen35()}) {
      const Ids ids = t->encode(text, {.parse_special = true});
      EXPECT_GT(ids.size(), kMegabyte / 8);
      EXPECT_LT(ids.size(), kMegabyte);
    }
  });
}

TEST(Limits, AMegabyteOfMarksOutOfOrder) {  // normalisation sorts them
  on_small_stack([] {
    const std::string text = repeated("\xCC\x8F\xCC\x96", kMegabyte);
    EXPECT_EQ(qwen3().decode(qwen3().encode(text)).size(), text.size());
  });
}

TEST(Limits, AMegabyteOfSpm) {
  const Tokenizer* spm = testing::tokenizer_of(testing::extra_file("llama-spm-vocab.gguf"));
  if (spm == nullptr) GTEST_SKIP() << "no llama-spm-vocab.gguf in the folder that KAZEIA_TEST_EXTRA names";
  on_small_stack([&] {
    for (const std::string_view part : {"A", "a b ", " ", "\xE4\xB8\xAD", "1", "\x80"}) {
      const std::string text = repeated(part, kMegabyte);
      EXPECT_EQ(spm->decode(spm->encode(text)), text) << part;
    }
  });
}

TEST(Limits, LargeVocabulariesStaySmallInMemory) {
  EXPECT_EQ(qwen35().size(), 248320);
  EXPECT_GT(qwen35().size_bytes(), 8'000'000);
  EXPECT_LT(qwen35().size_bytes(), 25'000'000);
  EXPECT_LT(qwen3().size_bytes(), 15'000'000);
}

}  // namespace
}  // namespace kz
