#include "text/spm.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>

namespace kz::text {
namespace {

using Ids = std::vector<int32_t>;

struct Vocabulary {
  StringTable tokens;
  std::vector<float> scores;
  std::vector<uint8_t> mergeable;
  std::array<int32_t, 256> byte_tokens{};
  int32_t unknown = -1;

  Vocabulary() { byte_tokens.fill(-1); }
  int32_t add(std::string_view token, float score, bool can_merge = true) {
    scores.push_back(score);
    mergeable.push_back(can_merge);
    return tokens.add(token);
  }
  Ids encode(std::string_view text) const {
    SpmEncoder::Scratch scratch;
    Ids ids;
    SpmEncoder({tokens, scores, mergeable, byte_tokens, unknown}).encode(text, scratch, ids);
    return ids;
  }
};

TEST(Spm, HighestScoreFirstThenFromTheLeft) {
  Vocabulary v;
  const int32_t a = v.add("a", -5), b = v.add("b", -5), ab = v.add("ab", -2), ba = v.add("ba", -1);
  EXPECT_EQ(v.encode("aba"), (Ids{a, ba}));
  EXPECT_EQ(v.encode("abab"), (Ids{a, ba, b}));
  EXPECT_EQ(v.encode("ab"), (Ids{ab}));
  const int32_t aa = v.add("aa", -1);
  EXPECT_EQ(v.encode("aaa"), (Ids{aa, a}));
}

TEST(Spm, WithoutTokenItsBytesElseUnknownElseNothing) {
  Vocabulary v;
  const int32_t a = v.add("a", 0);
  EXPECT_EQ(v.encode("a\xC3\xA9"), (Ids{a}));
  v.unknown = v.add("<unk>", 0, false);
  EXPECT_EQ(v.encode("a\xC3\xA9"), (Ids{a, v.unknown}));
  v.byte_tokens[0xC3] = v.add("<0xC3>", 0, false);
  EXPECT_EQ(v.encode("a\xC3\xA9"), (Ids{a, v.unknown}));
  EXPECT_EQ(v.encode("\xC3"), (Ids{v.byte_tokens[0xC3]}));  // not UTF-8
  v.byte_tokens[0xA9] = v.add("<0xA9>", 0, false);
  EXPECT_EQ(v.encode("a\xC3\xA9"), (Ids{a, v.byte_tokens[0xC3], v.byte_tokens[0xA9]}));
}

TEST(Spm, CharactersThatAreNoTokensCanMergeIntoOne) {
  Vocabulary v;
  const int32_t whole = v.add("xyz", 0);
  v.add("xy", -1);
  EXPECT_EQ(v.encode("xyz"), (Ids{whole}));
}

TEST(Spm, TextNeverBecomesAControlToken) {
  Vocabulary v;
  const int32_t open = v.add("<", -1), s = v.add("s", -1), close = v.add(">", -1), start = v.add("<s", -1);
  v.add("<s>", 0, false);
  EXPECT_EQ(v.encode("<s>"), (Ids{start, close}));
  EXPECT_EQ(v.encode("s<"), (Ids{s, open}));
}

TEST(Spm, EqualToThePlainAlgorithm) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    Vocabulary v;
    for (const char* c : {"a", "b", "c"}) v.add(c, -100);
    for (size_t n = random() % 12; n > 0; --n) {
      std::string token;
      for (size_t length = 2 + random() % 4; length > 0; --length) token += static_cast<char>('a' + random() % 3);
      if (v.tokens.find(token) < 0) v.add(token, -static_cast<float>(random() % 6));
    }
    std::string text;
    for (size_t n = random() % 30; n > 0; --n) text += static_cast<char>('a' + random() % 3);
    std::vector<std::string> symbols;
    for (const char c : text) symbols.emplace_back(1, c);
    for (;;) {
      int32_t best = -1;
      size_t at = 0;
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        const int32_t id = v.tokens.find(symbols[i] + symbols[i + 1]);
        if (id >= 0 && (best < 0 || v.scores[static_cast<size_t>(id)] > v.scores[static_cast<size_t>(best)])) {
          best = id, at = i;
        }
      }
      if (best < 0) break;
      symbols[at] += symbols[at + 1];
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
    Ids expected;
    for (const std::string& symbol : symbols) expected.push_back(v.tokens.find(symbol));
    ASSERT_EQ(v.encode(text), expected) << text << " round " << round;
  }
}

}  // namespace
}  // namespace kz::text
