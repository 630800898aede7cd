// Every stored case of every vocabulary. The ids of the *.jsonl files are those of the vocabularies' authors; the
// texts and ids of the *.inp and *.out files come with the two older vocabularies.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "vocabularies.h"

namespace kz {
namespace {

using testing::Ids;
using testing::show;
using testing::tokenizer_of;

constexpr int kCases = 207;

std::string data(const std::string& name) { return KZ_TEST_DATA "/tokenizer/" + name; }

struct JsonVectors {
  std::string name, vectors, vocabulary;
};

void PrintTo(const JsonVectors& v, std::ostream* out) { *out << v.name; }

class Vectors : public ::testing::TestWithParam<JsonVectors> {};

TEST_P(Vectors, AllIdsEqual) {
  const Tokenizer* tokenizer = tokenizer_of(GetParam().vocabulary);
  if (tokenizer == nullptr) GTEST_SKIP() << GetParam().vocabulary << " is not here (scripts/fetch_model gets it)";
  std::ifstream in(data(GetParam().vectors));
  ASSERT_TRUE(in.good());
  int n = 0;
  for (std::string line; std::getline(in, line); ++n) {
    const auto vector = nlohmann::json::parse(line);
    const auto text = vector["text"].get<std::string>();
    const Ids ids = tokenizer->encode(text, {.parse_special = vector["parse_special"].get<bool>()});
    const Ids expected = vector["ids"].get<Ids>();
    EXPECT_EQ(ids, expected) << "case " << n << ": " << text << "\n got  " << show(ids) << "\n want " << show(expected);
  }
  EXPECT_EQ(n, kCases);
}

INSTANTIATE_TEST_SUITE_P(All, Vectors,
                         ::testing::Values(JsonVectors{"qwen3", "qwen3.jsonl", data("qwen3-vocab.gguf")},
                                           JsonVectors{"qwen35", "qwen35.jsonl", data("qwen35-vocab.gguf")},
                                           JsonVectors{"smollm2", "smollm2.jsonl",
                                                       testing::fetched_model("SmolLM2-135M-Instruct.Q4_1.gguf")},
                                           JsonVectors{"qwen25", "qwen2.5.jsonl",
                                                       testing::fetched_model("qwen2.5-0.5b.gguf")}),
                         [](const auto& instance) { return instance.param.name; });

/// Texts separated by a line of their own, and one line of ids for each.
void compare_files(const Tokenizer& tokenizer, const std::string& inp, const std::string& out, int n_texts) {
  std::ifstream in(inp, std::ios::binary), ids_in(out);
  ASSERT_TRUE(in.good() && ids_in.good());
  const std::string all{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::string separator = "\n__ggml_vocab_test__\n";
  int n = 0;
  for (size_t pos = 0; pos < all.size(); ++n) {
    const size_t end = std::min(all.find(separator, pos), all.size());
    const std::string text = all.substr(pos, end - pos);
    std::string line;
    ASSERT_TRUE(std::getline(ids_in, line)) << n;
    std::istringstream numbers(line);
    const Ids expected{std::istream_iterator<int32_t>(numbers), std::istream_iterator<int32_t>()};
    const Ids ids = tokenizer.encode(text);
    EXPECT_EQ(ids, expected) << "text " << n << ": " << text << "\n got  " << show(ids) << "\n want " << show(expected);
    pos = end + separator.size();
  }
  EXPECT_EQ(n, n_texts);
}

TEST(VectorFiles, Gpt2) { compare_files(testing::gpt2(), data("gpt-2.inp"), data("gpt-2.out"), 46); }

TEST(VectorFiles, LlamaSpm) {
  const Tokenizer* tokenizer = tokenizer_of(testing::extra_file("llama-spm-vocab.gguf"));
  if (tokenizer == nullptr) GTEST_SKIP() << "no llama-spm-vocab.gguf in the folder that KAZEIA_TEST_EXTRA names";
  compare_files(*tokenizer, data("llama-spm.inp"), data("llama-spm.out"), 46);
}

/// What the ids of a text decode to is the text in NFC, so encoding it again gives the same ids.
TEST_P(Vectors, DecodedTextHasTheSameIds) {
  const Tokenizer* tokenizer = tokenizer_of(GetParam().vocabulary);
  if (tokenizer == nullptr) GTEST_SKIP() << GetParam().vocabulary << " is not here (scripts/fetch_model gets it)";
  std::ifstream in(data(GetParam().vectors));
  for (std::string line; std::getline(in, line);) {
    const auto vector = nlohmann::json::parse(line);
    const Ids expected = vector["ids"].get<Ids>();
    const std::string text = tokenizer->decode(expected, true);
    EXPECT_EQ(tokenizer->encode(text, {.parse_special = vector["parse_special"].get<bool>()}), expected) << text;
  }
}

}  // namespace
}  // namespace kz
