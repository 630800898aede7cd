#include <gtest/gtest.h>

#include <random>
#include <string>

#include "text/tokenizer.h"
#include "text/unicode.h"

namespace kz {
namespace {

const std::string kReplacement = "\xEF\xBF\xBD";

std::string decode(const std::string& bytes) {
  StreamDecoder decoder;
  std::string text = decoder.push(bytes);
  return text + decoder.finish();
}

TEST(StreamDecoder, HalfACharacterWaits) {
  StreamDecoder decoder;
  EXPECT_EQ(decoder.push(" \xF0\x9F"), " ");
  EXPECT_EQ(decoder.push("\x98\x80"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, CutAtTheEndIsReplacedOnce) {
  StreamDecoder decoder;
  EXPECT_EQ(decoder.push("a\xF0\x9F\x98"), "a");
  EXPECT_EQ(decoder.finish(), kReplacement);
  EXPECT_EQ(decoder.finish(), "");
  EXPECT_EQ(decoder.push("b"), "b");
}

TEST(StreamDecoder, BrokenBytesAreReplacedAtOnce) {
  StreamDecoder decoder;
  EXPECT_EQ(decoder.push("\xFFx"), kReplacement + "x");
  EXPECT_EQ(decoder.push("\xE2\x82"), "");
  EXPECT_EQ(decoder.push("x"), kReplacement + "x");                  // one for the whole of E2 82
  EXPECT_EQ(decoder.push("\xED\xA0"), kReplacement + kReplacement);  // a surrogate cannot become valid
  EXPECT_EQ(decoder.push("\xC0\xAF"), kReplacement + kReplacement);  // nor an overlong slash
}

TEST(StreamDecoder, NulIsACharacter) { EXPECT_EQ(decode(std::string("a\0b", 3)), std::string("a\0b", 3)); }

TEST(StreamDecoder, AnyCutGivesTheSameValidText) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (size_t n = random() % 12; n > 0; --n) {
      constexpr std::string_view kParts[] = {"a",        "\xC3\xA9",    "\xE4\xB8\xAD", "\xF0\x9F\xA6\x99",
                                             "\xE4\xB8", "\xF0",        "\x80",         "\xF4\x8F\xBF",
                                             "\xFF",     "\xED\xA0\x80"};
      bytes += kParts[random() % std::size(kParts)];
    }
    const std::string whole = decode(bytes);
    EXPECT_EQ(text::valid_prefix(whole), whole.size());
    if (text::valid_prefix(bytes) == bytes.size()) {
      EXPECT_EQ(whole, bytes);
    }
    for (size_t first = 0; first <= bytes.size(); ++first) {
      for (size_t second = first; second <= bytes.size(); ++second) {
        StreamDecoder decoder;
        std::string text;
        for (const std::string& part :
             {bytes.substr(0, first), bytes.substr(first, second - first), bytes.substr(second)}) {
          const std::string out = decoder.push(part);
          ASSERT_EQ(text::valid_prefix(out), out.size());
          text += out;
        }
        ASSERT_EQ(text + decoder.finish(), whole);
      }
    }
    StreamDecoder decoder;
    std::string text;
    for (const char c : bytes) text += decoder.push({&c, 1});
    ASSERT_EQ(text + decoder.finish(), whole);
  }
}

}  // namespace
}  // namespace kz
