// What holds for every text: decoding gives the text back.
#include <gtest/gtest.h>

#include "text/unicode.h"
#include "vocabularies.h"

namespace kz {
namespace {

using testing::gpt2;
using testing::Ids;
using testing::mixed_text;
using testing::qwen3;
using testing::qwen35;
using testing::random_bytes;

/// Each valid stretch replaced by its NFC, the other bytes as they are.
std::string normalised(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t n = text::valid_prefix(text);
    out += text::nfc(text.substr(0, n));
    text.remove_prefix(n);
    if (text.empty()) break;
    out += text.front();
    text.remove_prefix(1);
  }
  return out;
}

TEST(Properties, RandomBytesComeBack) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    const std::string bytes = random_bytes(seed % 100, seed);
    ASSERT_EQ(gpt2().decode(gpt2().encode(bytes)), bytes) << seed;
    ASSERT_EQ(qwen3().decode(qwen3().encode(bytes)), normalised(bytes)) << seed;
    ASSERT_EQ(qwen35().decode(qwen35().encode(bytes)), normalised(bytes)) << seed;
  }
}

TEST(Properties, AllBytesComeBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const Tokenizer* t : {&gpt2(), &qwen3(), &qwen35()}) {
    EXPECT_EQ(t->decode(t->encode(all)), all);
    for (int byte = 0; byte < 256; ++byte) {
      const std::string one(1, static_cast<char>(byte));
      const Ids ids = t->encode(one);
      ASSERT_EQ(ids.size(), 1u);
      EXPECT_EQ(t->piece(ids[0]), one);
    }
  }
}

TEST(Properties, BytesThatAreNotUtf8BecomeByteTokens) {
  const Ids ids = qwen3().encode("a\xFF\xFE\xE4\xB8z");
  ASSERT_EQ(ids.size(), 6u);
  for (size_t i = 1; i < 5; ++i) EXPECT_EQ(qwen3().piece(ids[i]).size(), 1u);
  // They part what stands around them: nothing composes across.
  EXPECT_EQ(qwen3().decode(qwen3().encode("e\xFF\xCC\x81")), "e\xFF\xCC\x81");
}

TEST(Properties, MixedTextComesBack) {
  for (unsigned seed = 1; seed < 30; ++seed) {
    // A special token parts what is normalised, so the text is compared without them.
    std::string text = mixed_text(3000, seed);
    for (const char* special : {"<think>", "<|im_start|>"}) {
      for (size_t at = text.find(special); at != std::string::npos; at = text.find(special)) text.erase(at, 1);
    }
    EXPECT_EQ(gpt2().decode(gpt2().encode(text)), text);
    EXPECT_EQ(qwen3().decode(qwen3().encode(text, {.parse_special = true}), true), normalised(text));
    EXPECT_EQ(qwen35().decode(qwen35().encode(text, {.parse_special = true}), true), normalised(text));
  }
}

TEST(Properties, DecodingIsTheSumOfPieces) {
  const std::string text = mixed_text(5000);
  for (const Tokenizer* t : {&gpt2(), &qwen3(), &qwen35()}) {
    for (const bool show : {false, true}) {
      const Ids ids = t->encode(text, {.parse_special = true});
      std::string sum;
      for (const int32_t id : ids) sum += t->piece(id, show);
      EXPECT_EQ(t->decode(ids, show), sum);
    }
  }
}

TEST(Properties, NormalisationStopsAtSpecialTokens) {
  // The accent stands behind a token, so it has nothing to compose with.
  const std::string text = "e<think>\xCC\x81";
  EXPECT_EQ(qwen3().decode(qwen3().encode(text)), text);
  EXPECT_EQ(qwen3().encode("e\xCC\x81"), qwen3().encode("\xC3\xA9"));
}

TEST(Properties, SpmGivesTheTextBack) {
  const Tokenizer* spm = testing::tokenizer_of(testing::extra_file("llama-spm-vocab.gguf"));
  if (spm == nullptr) GTEST_SKIP() << "no llama-spm-vocab.gguf in the folder that KAZEIA_TEST_EXTRA names";
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::string bytes = random_bytes(seed % 100, seed);
    ASSERT_EQ(spm->decode(spm->encode(bytes)), bytes) << seed;
  }
  for (const std::string text : {"", " ", "  two", "Hello  world ", "\n a"})
    EXPECT_EQ(spm->decode(spm->encode(text)), text);
  // The mark itself is read as the space it stands for.
  EXPECT_EQ(spm->decode(spm->encode("a\xE2\x96\x81"
                                    "b")),
            "a b");
  // A text after a special token gets a space of its own; only the first one is taken off again.
  EXPECT_EQ(spm->decode(spm->encode("a</s>b", {.parse_special = true}), true), "a</s> b");
}

}  // namespace
}  // namespace kz
