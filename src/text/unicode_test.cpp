#include "text/unicode.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace kz::text {
namespace {

using namespace std::string_view_literals;

/// A decoder written from the definition: bit patterns first, then what they must not be.
bool is_valid_character(std::string_view s) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  if (s.empty() || s.size() > 4) return false;
  constexpr unsigned kMask[] = {0, 0x80, 0xE0, 0xF0, 0xF8}, kBits[] = {0, 0, 0xC0, 0xE0, 0xF0};
  if ((at(0) & kMask[s.size()]) != kBits[s.size()]) return false;
  uint32_t c = at(0) & ~kMask[s.size()] & 0xFF;
  for (size_t i = 1; i < s.size(); ++i) {
    if ((at(i) & 0xC0) != 0x80) return false;
    c = (c << 6) | (at(i) & 0x3F);
  }
  constexpr uint32_t kLowest[] = {0, 0, 0x80, 0x800, 0x10000};
  return c >= kLowest[s.size()] && c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
}

/// Calls check with every sequence of one to four bytes that lie on the edges of UTF-8's ranges.
template <class Check>
void each_sequence(Check&& check) {
  constexpr std::string_view kEdges =
      "\x00\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEE\xEF\xF0\xF1\xF3\xF4\xF5\xFF"sv;
  for (size_t length = 1; length <= 4; ++length) {
    std::string s(length, '\0');
    std::vector<size_t> at(length, 0);
    for (bool more = true; more;) {
      for (size_t i = 0; i < length; ++i) s[i] = kEdges[at[i]];
      check(std::string_view(s));
      size_t i = 0;
      while (i < length && ++at[i] == kEdges.size()) at[i++] = 0;
      more = i < length;
    }
  }
}

TEST(Utf8, ValidIsWhatTheDefinitionSays) {
  each_sequence([](std::string_view s) {
    size_t valid = 0;
    for (size_t n = 1; n <= s.size(); ++n) {
      if (is_valid_character(s.substr(0, n))) valid = n;
    }
    const Utf8Step step = read_utf8(s, 0);
    ASSERT_EQ(step.kind == Utf8::valid, valid > 0);
    if (valid == 0) return;
    ASSERT_EQ(step.length, valid);
    ASSERT_EQ(read_valid_utf8(s, 0).code_point, step.code_point);
    std::string again;
    append_utf8(again, step.code_point);
    ASSERT_EQ(again, s.substr(0, valid));
  });
}

TEST(Utf8, IncompleteIsWhatSomeEndingMakesValid) {
  constexpr std::string_view kSecond = "\x80\x8F\x90\x9F\xA0\xBF"sv;
  const auto can_become_valid = [&](const std::string& s) {
    for (const char a : kSecond) {
      if (is_valid_character(s + a) || is_valid_character(s + a + '\x80') || is_valid_character(s + a + "\x80\x80")) {
        return true;
      }
    }
    return false;
  };
  each_sequence([&](std::string_view s) {
    const Utf8Step step = read_utf8(s, 0);
    const bool whole = s.size() == step.length;
    if (step.kind == Utf8::incomplete) {
      ASSERT_TRUE(whole);
      ASSERT_TRUE(can_become_valid(std::string(s)));
    } else if (step.kind == Utf8::invalid) {
      // The broken part ends where it stopped being the beginning of a character.
      ASSERT_TRUE(whole || !can_become_valid(std::string(s.substr(0, step.length + 1))));
      ASSERT_TRUE(step.length == 1 || can_become_valid(std::string(s.substr(0, step.length))));
    }
  });
}

TEST(Utf8, ValidPrefix) {
  EXPECT_EQ(valid_prefix(""), 0u);
  EXPECT_EQ(valid_prefix("abc"), 3u);
  EXPECT_EQ(valid_prefix("a\xC3\xA9\xF0\x9F\xA6\x99"), 7u);
  EXPECT_EQ(valid_prefix("a\xC3\xA9\xF0\x9F\xA6"), 3u);
  EXPECT_EQ(valid_prefix("\xA9"), 0u);
  EXPECT_EQ(valid_prefix("ab\xED\xA0\x80"), 2u);
}

TEST(CharClass, WhiteSpaceIsTheProperty) {
  const auto in = [](char32_t c, char32_t lo, char32_t hi) { return c >= lo && c <= hi; };
  for (char32_t c = 0; c < 0x110000; ++c) {
    const bool space = in(c, 9, 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || in(c, 0x2000, 0x200A) ||
                       c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
    ASSERT_EQ((char_class(c) & kSpace) != 0, space) << std::hex << static_cast<uint32_t>(c);
    ASSERT_EQ((char_class(c) & kNewline) != 0, c == '\r' || c == '\n');
  }
}

TEST(CharClass, Samples) {
  for (const char32_t c : U"azAZ\u00E9\u4E2D\u0E01\u05D0\U00020000\u02B0") {
    if (c != 0) {
      EXPECT_EQ(char_class(c), kLetter) << std::hex << static_cast<uint32_t>(c);
    }
  }
  for (const char32_t c : U"09\u00B2\u00BD\u2167\u0966\u3007") {
    if (c != 0) {
      EXPECT_EQ(char_class(c), kNumber) << std::hex << static_cast<uint32_t>(c);
    }
  }
  for (const char32_t c : U"\u0301\u093F\u0E31\u064E\u20DD\uFE0F") {
    if (c != 0) {
      EXPECT_EQ(char_class(c), kMark) << std::hex << static_cast<uint32_t>(c);
    }
  }
  for (const char32_t c : U"!\"#%&'()*,-./:;?@[\\]_{}\u00BF\u3002") {
    if (c != 0) {
      EXPECT_EQ(char_class(c), kPunctuation) << std::hex << static_cast<uint32_t>(c);
    }
  }
  for (const char32_t c : U"$+<=>^`|~\u20AC\U0001F999\u200B\u180E\u0001") {
    if (c != 0) {
      EXPECT_EQ(char_class(c), 0) << std::hex << static_cast<uint32_t>(c);
    }
  }
}

TEST(Nfc, Samples) {
  EXPECT_EQ(nfc("e\xCC\x81"), "\xC3\xA9");                                 // e, acute
  EXPECT_EQ(nfc("xe\xCC\x81y"), "x\xC3\xA9y");                             // with plain neighbours
  EXPECT_EQ(nfc("\xE2\x84\xAB"), "\xC3\x85");                              // Angstrom sign
  EXPECT_EQ(nfc("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB"), "\xED\x95\x9C");  // Hangul jamo
  EXPECT_EQ(nfc("\xE0\xA5\x98"), "\xE0\xA4\x95\xE0\xA4\xBC");              // composition exclusion
  EXPECT_EQ(nfc("a\xCC\x81\xCC\xA3"), "\xE1\xBA\xA1\xCC\x81");             // dot below comes first and composes
  EXPECT_EQ(nfc("\xCC\x81"), "\xCC\x81");                                  // nothing to compose with
  EXPECT_EQ(nfc("\n\xCC\x81"), "\n\xCC\x81");
  EXPECT_EQ(nfc("\xC3\xA9 plain"), "\xC3\xA9 plain");
  EXPECT_EQ(nfc(""), "");
  EXPECT_EQ(nfc("\xF0\x9D\x85\x9E"), "\xF0\x9D\x85\x97\xF0\x9D\x85\xA5");  // grows: U+1D15E
}

TEST(Nfc, ManyMarksAreOrderedStably) {
  std::string text = "a", ordered = "a";
  constexpr int kMarks = 20000;
  for (int i = 0; i < kMarks; ++i) text += i % 2 == 0 ? "\xCC\x8F" : "\xCC\x96";  // classes 230 and 220
  ordered = "a";
  for (int i = 0; i < kMarks / 2; ++i) ordered += "\xCC\x96";
  std::string above;
  for (int i = 0; i < kMarks / 2; ++i) above += "\xCC\x8F";
  // The first mark above composes with the letter (nothing of its class stands between): U+0201.
  EXPECT_EQ(nfc(text), "\xC8\x81" + ordered.substr(1) + above.substr(2));
}

TEST(Nfc, SurelyNfcIsNeverWrong) {
  for (char32_t c = 1; c < 0x3000; ++c) {
    std::string text = "a";
    append_utf8(text, c);
    if (surely_nfc(text)) {
      ASSERT_EQ(nfc(text), text) << std::hex << static_cast<uint32_t>(c);
    }
  }
  EXPECT_TRUE(surely_nfc("plain \xC3\xA9"));
  EXPECT_FALSE(surely_nfc("e\xCC\x81"));
}

}  // namespace
}  // namespace kz::text
