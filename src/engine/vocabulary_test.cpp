#include "engine/vocabulary.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <functional>

#include "core/error.h"
#include "gguf/writer.h"

namespace kz {
namespace {

using gguf::File;
using gguf::ValueType;
using gguf::Writer;

/// A file that lies in memory only.
File open_bytes(const Writer& writer) {
  const std::vector<std::byte> bytes = writer.bytes();
  const int fd = memfd_create("vocabulary", MFD_CLOEXEC);
  EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  File file = File::open(fd, 0, 0, "m.gguf");
  close(fd);
  return file;
}

Writer with_tokens(std::string_view model, size_t n_tokens) {
  Writer writer;
  writer.add_text("tokenizer.ggml.model", model);
  std::vector<std::string> texts;
  for (size_t i = 0; i < n_tokens; ++i) texts.push_back(fmt::format("t{}", i));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  writer.add_texts("tokenizer.ggml.tokens", views);
  return writer;
}

void expect_error(const std::function<void()>& action, ErrorCode code, const std::vector<std::string>& parts) {
  try {
    action();
    FAIL() << parts.front();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << " in: " << error.what();
    }
  }
}

TEST(Vocabulary, ReadsEveryKey) {
  Writer writer = with_tokens("gpt2", 30);
  writer.add_text("tokenizer.ggml.pre", "qwen35");
  std::vector<int64_t> types(30, 1);
  types[3] = 3;
  writer.add_integers("tokenizer.ggml.token_type", ValueType::i32, types);
  writer.add_texts("tokenizer.ggml.merges", std::array<std::string_view, 2>{"a b", "c d"});
  int64_t id = 1;
  for (const char* key : {"bos", "eos", "eot", "eom", "unknown", "seperator", "padding", "fim_pre", "fim_suf",
                          "fim_mid", "fim_pad", "fim_rep", "fim_sep"}) {
    writer.add_integer(fmt::format("tokenizer.ggml.{}_token_id", key), ValueType::u32, id++);
  }
  writer.add_bool("tokenizer.ggml.add_bos_token", true);
  writer.add_bool("tokenizer.ggml.add_eos_token", false);
  writer.add_bool("tokenizer.ggml.add_space_prefix", false);
  writer.add_text("tokenizer.chat_template", "{{ messages }}");
  writer.add_text("tokenizer.chat_template.tool_use", "{{ tools }}");
  const File file = open_bytes(writer);
  std::vector<std::string> notes;
  const VocabularyData data = read_vocabulary(file, &notes);
  EXPECT_EQ(data.source, "m.gguf");
  EXPECT_EQ(data.model, "gpt2");
  EXPECT_EQ(data.pre, "qwen35");
  EXPECT_EQ(data.tokens.size(), 30u);
  EXPECT_EQ(data.tokens[29], "t29");
  EXPECT_EQ(data.types[3], 3);
  EXPECT_TRUE(data.scores.empty());
  EXPECT_EQ(data.merges, (std::vector<std::string_view>{"a b", "c d"}));
  id = 1;
  for (const auto& field : {data.bos, data.eos, data.eot, data.eom, data.unk, data.sep, data.pad, data.fim_pre,
                            data.fim_suf, data.fim_mid, data.fim_pad, data.fim_rep, data.fim_sep}) {
    EXPECT_EQ(field, id++);
  }
  EXPECT_EQ(data.add_bos, true);
  EXPECT_EQ(data.add_eos, false);
  EXPECT_EQ(data.add_space_prefix, false);
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(chat_template(file), "{{ messages }}");
  EXPECT_EQ(chat_template(file, "tool_use"), "{{ tools }}");
  EXPECT_EQ(chat_template(file, "rag"), "");
}

TEST(Vocabulary, AbsentKeysStayAbsent) {
  const File file = open_bytes(with_tokens("llama", 3));
  const VocabularyData data = read_vocabulary(file);
  EXPECT_FALSE(data.bos || data.eos || data.fim_sep || data.add_bos || data.add_space_prefix);
  EXPECT_TRUE(data.pre.empty() && data.types.empty() && data.merges.empty());
  EXPECT_EQ(chat_template(file), "");
  const Tokenizer tokenizer(data);
  EXPECT_EQ(tokenizer.bos(), 1);
}

TEST(Vocabulary, IdsOutsideAreIgnoredWithANote) {
  Writer writer = with_tokens("gpt2", 3);
  writer.add_integer("tokenizer.ggml.bos_token_id", ValueType::u32, 3);
  writer.add_integer("tokenizer.ggml.eos_token_id", ValueType::i32, -1);
  writer.add_integer("tokenizer.ggml.eot_token_id", ValueType::u32, 0xFFFFFFFF);
  writer.add_integer("tokenizer.ggml.padding_token_id", ValueType::u32, 2);
  const File file = open_bytes(writer);
  std::vector<std::string> notes;
  const VocabularyData data = read_vocabulary(file, &notes);
  EXPECT_FALSE(data.bos || data.eos || data.eot);
  EXPECT_EQ(data.pad, 2);
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_EQ(notes[0], "tokenizer.ggml.bos_token_id is 3, outside the vocabulary of 3 tokens: ignored");
  EXPECT_NO_THROW(read_vocabulary(file));
}

TEST(Vocabulary, ShortArraysAreRefusedWithBothCounts) {
  for (const bool scores : {true, false}) {
    Writer writer = with_tokens("llama", 1000);
    if (scores) writer.add_floats("tokenizer.ggml.scores", std::vector<float>(10));
    writer.add_integers("tokenizer.ggml.token_type", ValueType::i32, std::vector<int64_t>(scores ? 1000 : 999, 1));
    const File file = open_bytes(writer);
    expect_error([&] { read_vocabulary(file); }, ErrorCode::bad_file,
                 {"m.gguf", scores ? "tokenizer.ggml.scores" : "tokenizer.ggml.token_type",
                  "array is shorter than the vocabulary", scores ? "10 entries" : "999 entries", "1000 tokens"});
  }
}

TEST(Vocabulary, LongArraysAreCut) {
  Writer writer = with_tokens("llama", 3);
  writer.add_floats("tokenizer.ggml.scores", std::vector<float>(5));
  writer.add_integers("tokenizer.ggml.token_type", ValueType::i32, std::vector<int64_t>(5, 1));
  const File file = open_bytes(writer);
  const VocabularyData data = read_vocabulary(file);
  EXPECT_EQ(data.types.size(), 3u);
  EXPECT_EQ(data.scores.size(), 3u);
}

TEST(Vocabulary, OtherModelsAreRefusedBeforeAnythingOfThemIsRead) {
  // A unigram tokenizer whose normalisation table is two bytes, with arrays that are too short as well.
  for (const char* model : {"t5", "unigram", "bert", "rwkv", "x\ny"}) {
    Writer writer = with_tokens(model, 100);
    writer.add_integers("tokenizer.ggml.precompiled_charsmap", ValueType::u8, std::array<int64_t, 2>{255, 255});
    writer.add_floats("tokenizer.ggml.scores", std::vector<float>(1));
    const File file = open_bytes(writer);
    expect_error([&] { read_vocabulary(file); }, ErrorCode::unsupported,
                 {"m.gguf: tokenizer.ggml.model: the tokenizer model", "is not supported, known are gpt2, llama"});
  }
}

TEST(Vocabulary, KeysOfTheWrongTypeAreRefused) {
  Writer writer;
  writer.add_text("tokenizer.ggml.model", "gpt2");
  writer.add_integers("tokenizer.ggml.tokens", ValueType::i32, std::array<int64_t, 2>{1, 2});
  const File numbers = open_bytes(writer);
  expect_error([&] { read_vocabulary(numbers); }, ErrorCode::bad_file, {"m.gguf", "tokenizer.ggml.tokens"});
  Writer second = with_tokens("gpt2", 2);
  second.add_text("tokenizer.ggml.token_type", "normal");
  const File text = open_bytes(second);
  expect_error([&] { read_vocabulary(text); }, ErrorCode::bad_file, {"m.gguf", "tokenizer.ggml.token_type"});
  Writer third;
  third.add_text("tokenizer.ggml.model", "gpt2");
  const File none = open_bytes(third);
  expect_error([&] { read_vocabulary(none); }, ErrorCode::bad_file, {"m.gguf", "tokenizer.ggml.tokens"});
}

TEST(Vocabulary, TypesThatFitNoIntegerAreRefusedByTheTokenizer) {
  Writer writer = with_tokens("gpt2", 2);
  writer.add_integers("tokenizer.ggml.token_type", ValueType::i64, std::array<int64_t, 2>{1, int64_t{1} << 40});
  const File file = open_bytes(writer);
  expect_error([&] { Tokenizer{read_vocabulary(file)}; }, ErrorCode::bad_file, {"token 1 has type"});
}

}  // namespace
}  // namespace kz
