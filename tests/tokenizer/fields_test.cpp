// Cases from the field: texts that other engines got wrong. The ids are those of the vocabularies' own tokenizers.
#include <gtest/gtest.h>

#include <cctype>

#include "vocabularies.h"

namespace kz {
namespace {

using testing::Ids;
using testing::qwen3;
using testing::qwen35;

TEST(Fields, SymbolRunsStayTogether) {  // a GPT-2 splitter gave [12, 29] and [7, 87, 8, 25, 198]
  EXPECT_EQ(qwen3().encode("->"), (Ids{405}));
  EXPECT_EQ(qwen3().encode("(x):\n"), (Ids{2075, 982}));
}

TEST(Fields, MarksAreLettersForOneVocabularyOnly) {
  const std::string namaste = "\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8\xE0\xA5\x8D\xE0\xA4\xA4\xE0\xA5\x87";
  const std::string sawasdee = "\xE0\xB8\xAA\xE0\xB8\xA7\xE0\xB8\xB1\xE0\xB8\xAA\xE0\xB8\x94\xE0\xB8\xB5";
  const std::string muhammad = "\xD9\x85\xD9\x8F\xD8\xAD\xD9\x8E\xD9\x85\xD9\x91\xD9\x8E\xD8\xAF";
  EXPECT_EQ(qwen3().encode(namaste), (Ids{60096, 87244, 78368, 30484, 97, 34370}));
  EXPECT_EQ(qwen35().encode(namaste), (Ids{58069, 84237, 150104, 153348}));
  EXPECT_EQ(qwen3().encode(sawasdee), (Ids{143126, 23271, 125136, 28319}));
  EXPECT_EQ(qwen35().encode(sawasdee), (Ids{34469, 168607}));
  EXPECT_EQ(qwen3().encode(muhammad), (Ids{10176, 64604, 29825, 27910, 10176, 27910, 73771, 13325}));
  EXPECT_EQ(qwen35().encode(muhammad), (Ids{9873, 62422, 28850, 168623}));
  EXPECT_EQ(qwen3().encode(" " + muhammad), (Ids{23364, 64604, 29825, 27910, 10176, 27910, 73771, 13325}));
  EXPECT_EQ(qwen35().encode(" " + muhammad), (Ids{229208}));
}

TEST(Fields, EveryAsciiSymbolBareAndAfterASpace) {
  const Ids qwen3_spaced{753,  330, 671, 400, 1018, 609, 364, 320,  873,  353,  488, 1154, 481, 659, 608, 549,
                         2587, 366, 284, 861, 937,  569, 508, 1124, 2279, 6306, 716, 1565, 314, 760, 335, 3968};
  const Ids qwen35_spaced{729,  328, 653, 393, 984, 594, 359, 318,  847,  348,  478, 1116, 471, 641, 593, 535,
                          2502, 361, 283, 835, 907, 554, 498, 1088, 2205, 6108, 696, 1510, 313, 735, 333, 3835};
  size_t i = 0;
  for (int c = 0x21; c < 0x7F; ++c) {
    if (std::isalnum(c)) continue;
    const std::string symbol(1, static_cast<char>(c));
    // The alphabet of these vocabularies begins with the printable characters in order.
    EXPECT_EQ(qwen3().encode(symbol), (Ids{c - 0x21})) << symbol;
    EXPECT_EQ(qwen35().encode(symbol), (Ids{c - 0x21})) << symbol;
    EXPECT_EQ(qwen3().encode(" " + symbol), (Ids{qwen3_spaced.at(i)})) << symbol;
    EXPECT_EQ(qwen35().encode(" " + symbol), (Ids{qwen35_spaced.at(i)})) << symbol;
    ++i;
  }
  EXPECT_EQ(i, qwen3_spaced.size());
  EXPECT_EQ(qwen3().encode("a ~ b"), (Ids{64, 3968, 293}));
  EXPECT_EQ(qwen3().encode("~~~"), (Ids{5817, 93}));
  EXPECT_EQ(qwen3().encode("^^"), (Ids{21876}));
  EXPECT_EQ(qwen3().encode("`x`"), (Ids{63, 87, 63}));
}

TEST(Fields, ControlTokensAreTextUnlessParsed) {
  const std::string text = "<|im_start|>Hello World<|im_end|>";
  EXPECT_EQ(qwen3().encode(text), (Ids{27, 91, 318, 4906, 91, 29, 9707, 4337, 27, 91, 318, 6213, 91, 29}));
  EXPECT_EQ(qwen3().encode(text, {.parse_special = true}), (Ids{151644, 9707, 4337, 151645}));
}

TEST(Fields, UserDefinedTokensAreAlwaysParsed) {
  for (const Tokenizer* t : {&qwen3(), &qwen35()}) {
    for (const char* text : {"<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>"}) {
      const int32_t id = t->find(text);
      ASSERT_GE(id, 0) << text;
      EXPECT_EQ(t->token_type(id), TokenType::user_defined);
      EXPECT_EQ(t->encode(text), (Ids{id}));
      EXPECT_EQ(t->encode(text, {.parse_special = true}), (Ids{id}));
      EXPECT_EQ(t->decode(Ids{id}), text) << "always shown";
    }
  }
}

TEST(Fields, NoSpecialTokenComesOutOfUnparsedText) {
  for (const Tokenizer* t : {&qwen3(), &qwen35(), &testing::gpt2()}) {
    for (int32_t id = 0; id < t->size(); ++id) {
      if (t->token_type(id) != TokenType::control) continue;
      const std::string text(t->token_text(id));
      EXPECT_EQ(t->encode(text, {.parse_special = true}), (Ids{id})) << text;
      const Ids ids = t->encode(text);
      for (const int32_t part : ids) EXPECT_NE(t->token_type(part), TokenType::control) << text;
      EXPECT_EQ(t->decode(ids), text);
    }
  }
}

TEST(Fields, EndOfGeneration) {
  const auto ends = [](const Tokenizer& t) {
    std::vector<std::string> texts;
    for (const int32_t id : t.end_tokens()) texts.emplace_back(t.token_text(id));
    return texts;
  };
  const std::vector<std::string> expected{"<|endoftext|>", "<|im_end|>", "<|fim_pad|>", "<|repo_name|>",
                                          "<|file_sep|>"};
  EXPECT_EQ(ends(qwen3()), expected);
  EXPECT_EQ(ends(qwen35()), expected);
  EXPECT_EQ(qwen3().eos(), 151645);
  EXPECT_EQ(qwen35().eos(), 248046);
  EXPECT_EQ(qwen35().bos(), -1);
  EXPECT_FALSE(qwen3().adds_bos());
  // Qwen2's "</s>" is an ordinary token: never special, never an end.
  const int32_t strike = qwen3().find("</s>");
  ASSERT_GE(strike, 0);
  EXPECT_FALSE(qwen3().ends_generation(strike));
  for (const int32_t id : qwen3().encode("</s>", {.parse_special = true})) EXPECT_NE(id, strike);
}

TEST(Fields, PaddingTokensAreNoText) {
  const int32_t last = qwen3().size() - 1;
  EXPECT_EQ(qwen3().token_type(last), TokenType::unused);
  EXPECT_EQ(qwen3().decode(Ids{last}), "");
  for (const int32_t id : qwen3().encode("[PAD151935]", {.parse_special = true})) EXPECT_LT(id, 151643);
}

}  // namespace
}  // namespace kz
