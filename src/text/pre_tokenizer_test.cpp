#include "text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"

namespace kz::text {
namespace {

using Words = std::vector<std::string>;

Words split(std::string_view rule, std::string_view text) {
  Words words;
  PreTokenizer(rule, "test").split(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

TEST(PreTokenizer, Qwen2) {
  EXPECT_EQ(split("qwen2", "Hello World"), (Words{"Hello", " World"}));
  EXPECT_EQ(split("qwen2", "a1234b"), (Words{"a", "1", "2", "3", "4", "b"}));
  EXPECT_EQ(split("qwen2", "(x):\n"), (Words{"(x", "):\n"}));
  EXPECT_EQ(split("qwen2", "->"), (Words{"->"}));
  EXPECT_EQ(split("qwen2", "a  b"), (Words{"a", " ", " b"}));
  EXPECT_EQ(split("qwen2", "a\t\tb"), (Words{"a", "\t", "\tb"}));
  EXPECT_EQ(split("qwen2", "a \n \n  b"), (Words{"a", " \n \n", " ", " b"}));
  EXPECT_EQ(split("qwen2", "a   "), (Words{"a", "   "}));
  EXPECT_EQ(split("qwen2", "a  1"), (Words{"a", " ", " ", "1"}));
  EXPECT_EQ(split("qwen2", " .\r\n\nx"), (Words{" .\r\n\n", "x"}));
  EXPECT_EQ(split("qwen2", "\nx"), (Words{"\n", "x"}));
  EXPECT_EQ(split("qwen2", "\xE3\x80\x80x"), (Words{"\xE3\x80\x80x"}));  // any space may stand before letters
  EXPECT_EQ(split("qwen2", ""), Words{});
}

TEST(PreTokenizer, Contractions) {
  EXPECT_EQ(split("qwen2", "It's WE'LL he'Re I'm x'd"),
            (Words{"It", "'s", " WE", "'LL", " he", "'Re", " I", "'m", " x", "'d"}));
  EXPECT_EQ(split("qwen2", "'x 'lx 'sx ''s"), (Words{"'x", " '", "lx", " '", "sx", " ''", "s"}));
  EXPECT_EQ(split("qwen2", "'sx"), (Words{"'s", "x"}));
  EXPECT_EQ(split("qwen2", "'\xC5\xBF"), (Words{"'\xC5\xBF"}));  // long s, without case an s
  EXPECT_EQ(split("qwen2", "'\xC5\xBFx"), (Words{"'\xC5\xBF", "x"}));
  EXPECT_EQ(split("gpt-2", "It's WE'LL"), (Words{"It", "'s", " WE", "'", "LL"}));
}

TEST(PreTokenizer, MarksAreLettersInQwen35Only) {
  const std::string namaste = "\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8\xE0\xA5\x8D\xE0\xA4\xA4\xE0\xA5\x87";
  EXPECT_EQ(split("qwen35", namaste), (Words{namaste}));
  // A sign that is no letter ends the word and is the optional first character of the next one.
  EXPECT_EQ(split("qwen2", namaste), (Words{namaste.substr(0, 9), namaste.substr(9, 6), namaste.substr(15, 3)}));
  EXPECT_EQ(split("qwen35", "\xCC\x81 \xCC\x81x"), (Words{"\xCC\x81", " \xCC\x81x"}));
}

TEST(PreTokenizer, Llama3TakesDigitsByThree) {
  EXPECT_EQ(split("llama-bpe", "1234567 89"), (Words{"123", "456", "7", " ", "89"}));
  for (const char* alias : {"llama3", "llama-v3", "falcon3", "pixtral", "lfm2"}) {
    const PreTokenizer rule(alias, "test");
    EXPECT_EQ(rule.name(), "llama-bpe");
    EXPECT_TRUE(rule.ignores_merges() && rule.adds_bos() && !rule.normalises());
  }
}

TEST(PreTokenizer, Smollm) {
  EXPECT_EQ(split("smollm", "ab 12\n\nc  d"), (Words{"ab", " ", "1", "2", "\n", "\n", "c", " ", " d"}));
  // The digit is cut out first, so white space before it stands at the end of its own piece.
  EXPECT_EQ(split("smollm", "a   1"), (Words{"a", "   ", "1"}));
  for (const char* alias : {"starcoder", "refact", "command-r", "codeshell", "exaone"}) {
    EXPECT_EQ(PreTokenizer(alias, "test").name(), "smollm");
  }
}

TEST(PreTokenizer, Gpt2) {
  EXPECT_EQ(split("gpt-2", "Hello 123 !? x\t y"), (Words{"Hello", " 123", " !?", " x", "\t", " y"}));
  EXPECT_EQ(split("gpt-2", "a\tb"), (Words{"a", "\t", "b"}));
  EXPECT_EQ(split("gpt-2", "->\n"), (Words{"->", "\n"}));
}

TEST(PreTokenizer, Default) {
  EXPECT_EQ(split("default", "ab, 12345 $x"), (Words{"ab", ",", " ", "123", "45", " ", "$", "x"}));
  EXPECT_EQ(split("", "a.b"), (Words{"a", ".", "b"}));
  EXPECT_EQ(PreTokenizer("", "test").name(), "default");
}

TEST(PreTokenizer, WordsAreTheText) {
  const std::string text = "I'll\t pay  $12.50 \r\n\n for \xE4\xB8\xAD\xE6\x96\x87 e\xCC\x81 \xF0\x9F\xA6\x99'S  ";
  for (const char* rule : {"qwen2", "qwen35", "llama-bpe", "smollm", "gpt-2", "default"}) {
    std::string all;
    for (const std::string& word : split(rule, text)) {
      EXPECT_FALSE(word.empty());
      all += word;
    }
    EXPECT_EQ(all, text) << rule;
  }
}

TEST(PreTokenizer, OnlyTheQwenTokenizersNormalise) {
  EXPECT_TRUE(PreTokenizer("qwen2", "test").normalises());
  EXPECT_TRUE(PreTokenizer("qwen35", "test").normalises());
  for (const char* rule : {"deepseek-r1-qwen", "megrez", "llama-bpe", "smollm", "gpt-2", "default"}) {
    EXPECT_FALSE(PreTokenizer(rule, "test").normalises()) << rule;
  }
}

TEST(PreTokenizer, UnknownNameIsRefusedWithTheKnownOnes) {
  try {
    PreTokenizer("gpt-4o\n", "m.gguf");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    const std::string text = error.what();
    EXPECT_EQ(text.find("m.gguf: tokenizer.ggml.pre: the pre-tokenizer 'gpt-4o\\x0a' is not supported"), 0u) << text;
    for (const char* known : {"qwen2", "qwen35", "llama-bpe", "smollm", "gpt-2", "default"}) {
      EXPECT_NE(text.find(known), std::string::npos) << known;
    }
  }
}

}  // namespace
}  // namespace kz::text
