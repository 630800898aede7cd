#include "text/special_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace kz::text {
namespace {

using Found = std::vector<std::pair<std::string, int32_t>>;  // fragments; id -1 for raw text

Found fragments(const SpecialTokens& specials, std::string_view text, bool parse_special) {
  Found found;
  size_t pos = 0;
  for (const SpecialMatch& m : specials.find(text, parse_special)) {
    if (m.begin > pos) found.emplace_back(text.substr(pos, m.begin - pos), -1);
    found.emplace_back(text.substr(m.begin, m.end - m.begin), m.id);
    pos = m.end;
  }
  if (pos < text.size()) found.emplace_back(text.substr(pos), -1);
  return found;
}

/// The definition: one token after the other, longest first, is cut out of every fragment that is still raw.
Found cut_one_by_one(std::vector<SpecialToken> tokens, const std::string& text, bool parse_special) {
  std::sort(tokens.begin(), tokens.end(), [](const SpecialToken& a, const SpecialToken& b) {
    return a.text.size() != b.text.size() ? a.text.size() > b.text.size() : a.id < b.id;
  });
  Found all;
  if (!text.empty()) all.emplace_back(text, -1);
  for (const SpecialToken& token : tokens) {
    if (token.text.empty() || (!token.always && !parse_special)) continue;
    Found next;
    for (const auto& [fragment, id] : all) {
      if (id >= 0) {
        next.emplace_back(fragment, id);
        continue;
      }
      size_t pos = 0;
      for (size_t at = fragment.find(token.text); at != std::string::npos; at = fragment.find(token.text, pos)) {
        if (at > pos) next.emplace_back(fragment.substr(pos, at - pos), -1);
        next.emplace_back(std::string(token.text), token.id);
        pos = at + token.text.size();
      }
      if (pos < fragment.size()) next.emplace_back(fragment.substr(pos), -1);
    }
    all = std::move(next);
  }
  return all;
}

TEST(SpecialTokens, NoneAndEmpty) {
  EXPECT_TRUE(SpecialTokens().find("abc", true).empty());
  EXPECT_TRUE(SpecialTokens({{"", 3, true}}).find("abc", true).empty());
  EXPECT_TRUE(SpecialTokens({{"a", 3, true}}).find("", true).empty());
}

TEST(SpecialTokens, LongestFirstIsNotLeftmostFirst) {
  const SpecialTokens specials({{"<a>", 1, true}, {"a>b<a", 2, true}});
  EXPECT_EQ(fragments(specials, "<a>b<a>", true), (Found{{"<", -1}, {"a>b<a", 2}, {">", -1}}));
}

TEST(SpecialTokens, ControlTokensOnlyWhenParsed) {
  const SpecialTokens specials({{"<|im_end|>", 1, false}, {"<think>", 2, true}});
  const std::string text = "x<|im_end|><think>";
  EXPECT_EQ(fragments(specials, text, false), (Found{{"x<|im_end|>", -1}, {"<think>", 2}}));
  EXPECT_EQ(fragments(specials, text, true), (Found{{"x", -1}, {"<|im_end|>", 1}, {"<think>", 2}}));
}

TEST(SpecialTokens, BytesNeedNotBeUtf8) {
  const SpecialTokens specials({{"\x80", 1, true}, {"\xFF(", 2, true}, {"[a-", 3, true}});
  EXPECT_EQ(fragments(specials, "\xE2\x80\x80\xFF([a-", false),
            (Found{{"\xE2", -1}, {"\x80", 1}, {"\x80", 1}, {"\xFF(", 2}, {"[a-", 3}}));
}

TEST(SpecialTokens, EqualToCuttingOneByOne) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> strings(1 + random() % 8);
    for (std::string& s : strings) {
      for (size_t n = 1 + random() % 5; n > 0; --n) s += static_cast<char>('a' + random() % 2);
    }
    std::sort(strings.begin(), strings.end());
    strings.erase(std::unique(strings.begin(), strings.end()), strings.end());
    std::shuffle(strings.begin(), strings.end(), random);
    std::vector<SpecialToken> tokens;
    for (const std::string& s : strings) tokens.push_back({s, static_cast<int32_t>(tokens.size()), random() % 2 == 0});
    std::string text;
    for (size_t n = random() % 30; n > 0; --n) text += static_cast<char>('a' + random() % (2 + round % 2));
    const SpecialTokens specials(tokens);
    for (const bool parse : {false, true}) {
      ASSERT_EQ(fragments(specials, text, parse), cut_one_by_one(tokens, text, parse)) << text << " round " << round;
    }
  }
}

TEST(SpecialTokens, RepeatedBeginningsStayLinear) {
  const std::string token(5000, 'a');
  const SpecialTokens specials({{token, 1, true}, {token + "b", 2, true}});
  const std::string text(1000000, 'a');
  const std::vector<SpecialMatch> matches = specials.find(text, true);
  EXPECT_EQ(matches.size(), text.size() / token.size());
}

TEST(SpecialTokens, ManyStringsThatEndAtOnePlace) {  // their occurrences together would need gigabytes
  std::vector<std::string> strings;
  for (size_t n = 1; n <= 2000; ++n) strings.emplace_back(n, 'a');
  std::vector<SpecialToken> tokens;
  for (const std::string& s : strings) tokens.push_back({s, static_cast<int32_t>(s.size()), true});
  const SpecialTokens specials(tokens);
  const std::vector<SpecialMatch> matches = specials.find(std::string(100500, 'a'), true);
  ASSERT_EQ(matches.size(), 51u);
  EXPECT_EQ(matches[49].id, 2000);
  EXPECT_EQ(matches[50].id, 500);
}

}  // namespace
}  // namespace kz::text
