#include "text/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "core/error.h"
#include "text/byte_symbols.h"

namespace kz::text {
namespace {

using Ids = std::vector<int32_t>;

struct Vocabulary {
  StringTable tokens;
  std::vector<std::string> merges;

  BytePairEncoder encoder() const {
    const std::vector<std::string_view> views(merges.begin(), merges.end());
    return {tokens, views, "test"};
  }
};

Ids encode(const BytePairEncoder& encoder, std::string_view word) {
  BytePairEncoder::Scratch scratch;
  Ids ids;
  encoder.encode(word, scratch, ids);
  return ids;
}

/// The definition: again and again, the leftmost pair of the lowest rank becomes one.
std::vector<std::string> merge_plainly(const std::vector<std::string>& merges, const std::string& word) {
  std::map<std::pair<std::string, std::string>, size_t> ranks;
  for (size_t i = 0; i < merges.size(); ++i) {
    const size_t space = merges[i].find(' ', 1);
    ranks.emplace(std::pair(merges[i].substr(0, space), merges[i].substr(space + 1)), i);
  }
  std::vector<std::string> symbols;
  for (const char c : word) symbols.emplace_back(1, c);
  for (;;) {
    size_t best = SIZE_MAX, at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found != ranks.end() && found->second < best) best = found->second, at = i;
    }
    if (best == SIZE_MAX) return symbols;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(BytePairs, MergesByRankThenFromTheLeft) {
  Vocabulary v;
  for (const char* token : {"a", "b", "aa", "ab", "aab"}) v.tokens.add(token);
  v.merges = {"a a", "a b", "aa b"};
  const BytePairEncoder encoder = v.encoder();
  EXPECT_EQ(encode(encoder, ""), Ids{});
  EXPECT_EQ(encode(encoder, "aab"), (Ids{4}));
  EXPECT_EQ(encode(encoder, "aaab"), (Ids{2, 3}));
  EXPECT_EQ(encode(encoder, "aaa"), (Ids{2, 0}));
  EXPECT_EQ(encode(encoder, "ba"), (Ids{1, 0}));
}

TEST(BytePairs, SymbolsThatAreNoTokensAreWrittenByteByByte) {
  Vocabulary v;
  for (const char* token : {"a", "b"}) v.tokens.add(token);
  v.merges = {"a b", "ab c"};  // neither result is a token, and "c" is none either
  const BytePairEncoder encoder = v.encoder();
  EXPECT_EQ(encode(encoder, "aba"), (Ids{0, 1, 0}));
  EXPECT_EQ(encode(encoder, "abc"), (Ids{0, 1}));
  EXPECT_EQ(encoder.byte_token('a'), 0);
  EXPECT_EQ(encoder.byte_token('c'), -1);
}

TEST(BytePairs, AMergeMayBeginWithASpaceAndTheFirstOfTwoCounts) {
  Vocabulary v;
  for (const char* token : {"a", "b", "c", "ab", "bc"}) v.tokens.add(token);
  v.merges = {"  x", "b c", "a b", "b c"};
  const BytePairEncoder encoder = v.encoder();
  EXPECT_EQ(encode(encoder, "abc"), (Ids{0, 4}));
}

TEST(BytePairs, MergesWithoutTwoPartsAreRefused) {
  for (const char* merge : {"", "ab", "a ", " a"}) {
    Vocabulary v;
    v.tokens.add("a");
    v.merges = {"a a", merge};
    try {
      v.encoder();
      FAIL() << "'" << merge << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_file);
      EXPECT_NE(std::string(error.what()).find("test: tokenizer.ggml.merges: merge 1"), std::string::npos);
    }
  }
}

TEST(BytePairs, EqualToThePlainAlgorithm) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    Vocabulary v;
    std::vector<std::string> strings{"a", "b", "c"};
    for (const std::string& s : strings) v.tokens.add(s);
    for (size_t n = random() % 12; n > 0; --n) {
      const std::string left = strings[random() % strings.size()], right = strings[random() % strings.size()];
      v.merges.push_back(left + " " + right);
      if (v.tokens.find(left + right) < 0) {
        v.tokens.add(left + right);
        strings.push_back(left + right);
      }
    }
    std::shuffle(v.merges.begin(), v.merges.end(), random);
    const BytePairEncoder encoder = v.encoder();
    for (int i = 0; i < 20; ++i) {
      std::string word;
      for (size_t n = random() % 25; n > 0; --n) word += static_cast<char>('a' + random() % 3);
      Ids expected;
      for (const std::string& symbol : merge_plainly(v.merges, word)) expected.push_back(v.tokens.find(symbol));
      ASSERT_EQ(encode(encoder, word), expected) << word << " round " << round;
    }
  }
}

}  // namespace
}  // namespace kz::text
