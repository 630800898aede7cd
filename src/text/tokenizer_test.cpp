#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "core/error.h"

namespace kz {
namespace {

using Ids = std::vector<int32_t>;

/// A small byte-level vocabulary: 0 "a", 1 "b", 2 "ab", 3 space, 4 control, 5 user-defined, 6 end.
VocabularyData small() {
  VocabularyData data;
  data.source = "m.gguf";
  data.model = "gpt2";
  data.pre = "gpt-2";
  data.tokens = {"a", "b", "ab", "\xC4\xA0", "<|x|>", "<u>", "<|im_end|>", "[PAD7]"};
  data.types = {1, 1, 1, 1, 3, 4, 3, 5};
  data.merges = {"a b"};
  return data;
}

/// A small SentencePiece vocabulary.
VocabularyData small_spm() {
  VocabularyData data;
  data.source = "m.gguf";
  data.model = "llama";
  data.tokens = {"<unk>",
                 "<s>",
                 "</s>",
                 "<0x0A>",
                 "\xE2\x96\x81",
                 "a",
                 "\xE2\x96\x81"
                 "a"};
  data.types = {2, 3, 3, 6, 1, 1, 1};
  data.scores = {0, 0, 0, 0, -3, -4, -1};
  return data;
}

void expect_refused(const VocabularyData& data, ErrorCode code, const std::vector<std::string>& parts) {
  try {
    const Tokenizer tokenizer(data);
    FAIL() << "expected: " << parts.front();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << " in: " << error.what();
    }
  }
}

TEST(Tokenizer, Encodes) {
  const Tokenizer t(small());
  EXPECT_EQ(t.encode(""), Ids{});
  EXPECT_EQ(t.encode("ab ba"), (Ids{2, 3, 1, 0}));
  EXPECT_EQ(t.encode("a<u>b"), (Ids{0, 5, 1}));
  EXPECT_EQ(t.encode("a<|x|>b", {.parse_special = true}), (Ids{0, 4, 1}));
  EXPECT_EQ(t.encode("a<|x|>b"), (Ids{0, 1})) << "bytes without a token are left out";
}

TEST(Tokenizer, Decodes) {
  const Tokenizer t(small());
  EXPECT_EQ(t.decode(Ids{2, 3, 4, 5, 6, 7}), "ab <u>");
  EXPECT_EQ(t.decode(Ids{2, 3, 4, 5, 6, 7}, true), "ab <|x|><u><|im_end|>[PAD7]");
  EXPECT_EQ(t.decode(Ids{-1, 0, 8, std::numeric_limits<int32_t>::max()}), "a");
  EXPECT_EQ(t.piece(3), " ");
  EXPECT_EQ(t.piece(-5), "");
}

TEST(Tokenizer, TellsAboutItsTokens) {
  const Tokenizer t(small());
  EXPECT_EQ(t.size(), 8);
  EXPECT_EQ(t.model(), "gpt2");
  EXPECT_EQ(t.pre(), "gpt-2");
  EXPECT_EQ(t.token_text(3), "\xC4\xA0");
  EXPECT_EQ(t.token_text(99), "");
  EXPECT_EQ(t.token_type(5), TokenType::user_defined);
  EXPECT_EQ(t.token_type(-1), TokenType::unused);
  EXPECT_EQ(t.find("ab"), 2);
  EXPECT_EQ(t.find("nope"), -1);
  EXPECT_GT(t.size_bytes(), 0);
}

TEST(Tokenizer, BeginningAndEnd) {
  VocabularyData data = small();
  data.bos = 4;
  data.eos = 6;
  EXPECT_EQ(Tokenizer(data).encode("a", {.add_special = true}), (Ids{0})) << "only where the vocabulary says so";
  data.add_bos = data.add_eos = true;
  EXPECT_EQ(Tokenizer(data).encode("a", {.add_special = true}), (Ids{4, 0, 6}));
  EXPECT_EQ(Tokenizer(data).encode("a"), (Ids{0}));
  data.bos = 99;  // outside the vocabulary: there is none
  const Tokenizer t(data);
  EXPECT_EQ(t.bos(), -1);
  EXPECT_FALSE(t.adds_bos());
  EXPECT_EQ(t.encode("a", {.add_special = true}), (Ids{0, 6}));
}

TEST(Tokenizer, Llama3AddsBosByItsPreTokenizer) {
  VocabularyData data = small();
  data.bos = 4;
  data.pre = "llama-bpe";
  EXPECT_TRUE(Tokenizer(data).adds_bos());
  data.add_bos = false;
  EXPECT_FALSE(Tokenizer(data).adds_bos());
}

TEST(Tokenizer, Llama3TakesWholeWordsWithoutMerges) {
  VocabularyData data = small();
  data.merges = {};
  EXPECT_EQ(Tokenizer(data).encode("ab"), (Ids{0, 1}));
  data.pre = "llama-bpe";
  EXPECT_EQ(Tokenizer(data).encode("ab"), (Ids{2}));
}

TEST(Tokenizer, AbsentIdsHaveDefaults) {
  const Tokenizer spm(small_spm());
  EXPECT_EQ(spm.bos(), 1);
  EXPECT_EQ(spm.eos(), 2);
  EXPECT_TRUE(spm.adds_bos());
  // A byte-level vocabulary: token 11, unless that is ordinary text.
  VocabularyData data = small();
  data.tokens.insert(data.tokens.end(), {"c", "d", "e", "<|end|>"});
  data.types.insert(data.types.end(), {1, 1, 1, 3});
  EXPECT_EQ(Tokenizer(data).eos(), 11);
  data.types.back() = 1;
  EXPECT_EQ(Tokenizer(data).eos(), -1);
}

TEST(Tokenizer, TinyVocabularyWithDefaultIds) {  // three tokens, BOS 1 and EOS 2 by default, no newline token
  VocabularyData data;
  data.source = "m.gguf";
  data.model = "llama";
  data.tokens = {"<unk>", "<s>", "</s>"};
  const Tokenizer t(data);
  EXPECT_EQ(t.encode("\n", {.add_special = true}), (Ids{1, 0, 0}));
  data.tokens = {"a"};
  data.model = "gpt2";
  EXPECT_EQ(Tokenizer(data).bos(), -1);
  EXPECT_EQ(Tokenizer(data).eos(), -1);
  EXPECT_TRUE(Tokenizer(data).end_tokens().empty());
}

TEST(Tokenizer, AllEndTokensAreKnown) {
  VocabularyData data;
  data.model = "gpt2";
  data.pre = "qwen2";
  data.tokens = {
      "a", "<|endoftext|>", "<|im_end|>", "</s>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|eom_id|>",
      "x", "<|eot_id|>",    "y"};
  data.types = {1, 3, 3, 1, 3, 3, 3, 3, 3, 4, 3};
  data.eos = 2;
  data.eot = 8;
  data.eom = 10;
  const Tokenizer t(data);
  const std::span<const int32_t> ends = t.end_tokens();
  // Not 3: an ordinary "</s>" is text.
  EXPECT_EQ(Ids(ends.begin(), ends.end()), (Ids{1, 2, 4, 5, 6, 7, 8, 9, 10}));
  for (int32_t id = -1; id <= t.size(); ++id) {
    EXPECT_EQ(t.ends_generation(id), std::find(ends.begin(), ends.end(), id) != ends.end()) << id;
  }
  data.fim_pad = 0;  // a key goes before the text
  EXPECT_TRUE(Tokenizer(data).ends_generation(0));
  EXPECT_FALSE(Tokenizer(data).ends_generation(4));
}

TEST(Tokenizer, SpmSpaces) {
  const Tokenizer t(small_spm());
  EXPECT_EQ(t.encode("a"), (Ids{6}));
  EXPECT_EQ(t.encode(" a"), (Ids{4, 6}));
  EXPECT_EQ(t.encode(""), Ids{});
  EXPECT_EQ(t.encode("a</s>a", {.parse_special = true}), (Ids{6, 2, 6}));
  EXPECT_EQ(t.encode("a\na"), (Ids{6, 3, 5}));
  EXPECT_EQ(t.decode(Ids{6, 3, 5}), "a\na");
  EXPECT_EQ(t.decode(Ids{1, 6}), "a") << "a hidden token does not count as the start";
  EXPECT_EQ(t.decode(Ids{1, 6}, true), "<s> a");
  EXPECT_EQ(t.piece(6), " a");
  VocabularyData data = small_spm();
  data.add_space_prefix = false;
  EXPECT_EQ(Tokenizer(data).encode("a"), (Ids{5}));
  EXPECT_EQ(Tokenizer(data).decode(Ids{6}), " a");
}

TEST(Tokenizer, SpmTextDoesNotBecomeControlOrByteTokens) {
  const Tokenizer t(small_spm());
  for (const int32_t id : t.encode("<s><0x0A></s>")) EXPECT_TRUE(id == 4 || id == 0) << id;
}

TEST(Tokenizer, ShortArraysAreRefusedWithBothCounts) {
  VocabularyData data = small_spm();
  data.types.pop_back();
  expect_refused(data, ErrorCode::bad_file, {"m.gguf", "token_type", "array is shorter than the vocabulary", "6", "7"});
  data = small_spm();
  data.scores.resize(3);
  expect_refused(data, ErrorCode::bad_file, {"m.gguf", "scores", "array is shorter than the vocabulary", "3", "7"});
}

TEST(Tokenizer, ContradictionsAreRefused) {
  VocabularyData data = small();
  data.tokens[5] = "ab";
  expect_refused(data, ErrorCode::bad_file, {"tokens 2 and 5 have the same text 'ab'"});
  data = small();
  data.types[3] = 7;
  expect_refused(data, ErrorCode::bad_file, {"token_type: token 3 has type 7, expected 1 to 6"});
  data = small_spm();
  data.scores[4] = std::numeric_limits<float>::quiet_NaN();
  expect_refused(data, ErrorCode::bad_file, {"scores: the score of token 4 is not a number"});
  data = small();
  data.tokens.clear();
  data.types.clear();
  expect_refused(data, ErrorCode::bad_file, {"tokens: 0 tokens, expected 1 to"});
  data = small();
  data.merges = {"a b", "ab"};
  expect_refused(data, ErrorCode::bad_file, {"merges: merge 1 is 'ab'"});
}

TEST(Tokenizer, UnknownKindsAreRefusedByName) {
  VocabularyData data = small();
  data.model = "t5";
  expect_refused(data, ErrorCode::unsupported, {"'t5'", "gpt2", "llama"});
  data = small();
  data.pre = "tekken";
  expect_refused(data, ErrorCode::unsupported, {"'tekken'", "qwen35", "llama-bpe"});
}

TEST(Tokenizer, EmptyTokenTextsAreFine) {
  VocabularyData data = small();
  data.tokens[0] = data.tokens[6] = "";
  data.types[6] = 3;
  const Tokenizer t(data);
  EXPECT_EQ(t.find(""), -1);
  EXPECT_EQ(t.encode("b", {.parse_special = true}), (Ids{1}));
}

TEST(Tokenizer, TooMuchTextIsRefusedBeforeItIsRead) {
  const Tokenizer t(small());
  const char byte = 'a';
  const std::string_view huge(&byte, size_t{1} << 31);  // nobody may read it
  try {
    t.encode(huge);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_argument);
    EXPECT_NE(std::string(error.what()).find("2147483648"), std::string::npos);
  }
}

}  // namespace
}  // namespace kz
