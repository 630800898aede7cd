#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>

#include "text/tokenizer.h"
#include "text/unicode.h"

namespace kz {
namespace {

using Strings = std::vector<std::string>;

struct Outcome {
  std::string text;
  bool stopped = false;
  bool operator==(const Outcome&) const = default;
};

void PrintTo(const Outcome& o, std::ostream* out) { *out << "'" << o.text << (o.stopped ? "' stopped" : "'"); }

/// The definition: the match that ends first, of those that end there the longest.
Outcome search(const Strings& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stops) {
      if (stop.size() <= end && text.compare(end - stop.size(), stop.size(), stop) == 0) {
        longest = std::max(longest, stop.size());
      }
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

Outcome stream(const Strings& stops, const Strings& parts) {
  StopMatcher matcher(stops);
  std::string text;
  for (const std::string& part : parts) text += matcher.push(part);
  text += matcher.finish();
  return {text, matcher.stopped()};
}

TEST(StopMatcher, WithoutStopsTextPasses) {
  StopMatcher matcher({});
  EXPECT_EQ(matcher.push("abc"), "abc");
  EXPECT_EQ(matcher.finish(), "");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, WhatStandsBeforeTheStopIsDelivered) {  // "?\n" in one token, stop "\n"
  StopMatcher matcher({"\n"});
  EXPECT_EQ(matcher.push("?\n"), "?");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, AStopMaySpanTokens) {
  StopMatcher matcher({"O P Q"});
  EXPECT_EQ(matcher.push(" N"), " N");
  EXPECT_EQ(matcher.push(" O"), " ");
  EXPECT_EQ(matcher.push(" P"), "");
  EXPECT_EQ(matcher.push(" Q"), "");
  EXPECT_TRUE(matcher.stopped());
}

TEST(StopMatcher, AFalseStartIsReleased) {
  StopMatcher matcher({"O P Q", "PX"});
  EXPECT_EQ(matcher.push("O P"), "");
  EXPECT_EQ(matcher.push("!"), "O P!");
  EXPECT_EQ(matcher.push("aabaa"), "aabaa");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, TheBeginningOfAStopMayFollowAFalseStart) {
  EXPECT_EQ(stream({"aab"}, {"aa", "ab", "c"}), (Outcome{"a", true}));
  EXPECT_EQ(stream({"abab!"}, {"ababab", "!"}), (Outcome{"ab", true}));
}

TEST(StopMatcher, HeldTextComesAtTheEnd) { EXPECT_EQ(stream({"stop"}, {"a st", "o"}), (Outcome{"a sto", false})); }

TEST(StopMatcher, EmptyAndBrokenStopsMatchNothing) {
  EXPECT_EQ(stream({"", "\xA9"}, {"caf\xC3\xA9"}), (Outcome{"caf\xC3\xA9", false}));
}

TEST(StopMatcher, EveryStopAgainstEverySplit) {
  const std::string text =
      "ab\xC3\xA9"
      "aba\n?\n";
  for (size_t begin = 0; begin < text.size(); ++begin) {
    for (size_t length = 1; begin + length <= text.size(); ++length) {
      const Strings stops{text.substr(begin, length), "zz"};
      if (text::valid_prefix(stops[0]) != stops[0].size()) continue;
      const Outcome expected = search(stops, text);
      ASSERT_TRUE(expected.stopped);
      for (uint32_t cuts = 0; cuts < (1u << (text.size() - 1)); ++cuts) {  // every way to cut the text
        Strings parts(1);
        for (size_t i = 0; i < text.size(); ++i) {
          parts.back() += text[i];
          if ((cuts >> i) & 1) parts.emplace_back();
        }
        ASSERT_EQ(stream(stops, parts), expected) << stops[0] << " cuts " << cuts;
      }
    }
  }
}

TEST(StopMatcher, RandomStopsAndCuts) {
  std::mt19937 random(17);
  const auto word = [&](size_t most) {
    std::string s;
    for (size_t n = 1 + random() % most; n > 0; --n) s += static_cast<char>('a' + random() % 2);
    return s;
  };
  for (int round = 0; round < 20000; ++round) {
    Strings stops;
    for (size_t n = random() % 4; n > 0; --n) stops.push_back(word(6));
    Strings parts;
    std::string text;
    for (size_t n = random() % 6; n > 0; --n) {
      parts.push_back(word(5));
      text += parts.back();
    }
    ASSERT_EQ(stream(stops, parts), search(stops, text)) << text << " round " << round;
  }
}

/// Token bytes through both: what is shown is what the whole text shows, and never half a character.
TEST(StopMatcher, BehindADecoderAnyCutShowsTheSame) {
  std::mt19937 random(19);
  for (int round = 0; round < 20000; ++round) {
    constexpr std::string_view kParts[] = {"a", "\xC3\xA9", "\xE4\xB8\xAD", "\xE4\xB8", "\xC3", "b"};
    std::string bytes;
    for (size_t n = random() % 10; n > 0; --n) bytes += kParts[random() % std::size(kParts)];
    const Strings stops{random() % 2 ? "\xC3\xA9"
                                       "a"
                                     : "\xE4\xB8\xAD",
                        random() % 2 ? "ab" : "\xEF\xBF\xBD"};
    StreamDecoder whole;
    std::string text = whole.push(bytes);
    text += whole.finish();
    const Outcome expected = search(stops, text);
    StreamDecoder decoder;
    StopMatcher matcher(stops);
    std::string shown;
    for (size_t pos = 0; pos < bytes.size();) {
      const size_t n = 1 + random() % 3;
      const std::string out = matcher.push(decoder.push(std::string_view(bytes).substr(pos, n)));
      ASSERT_EQ(text::valid_prefix(out), out.size());
      shown += out;
      pos += n;
    }
    shown += matcher.push(decoder.finish());
    shown += matcher.finish();
    ASSERT_EQ((Outcome{shown, matcher.stopped()}), expected);
  }
}

}  // namespace
}  // namespace kz
