#include "text/byte_symbols.h"

#include <gtest/gtest.h>

#include <set>

namespace kz::text {
namespace {

TEST(ByteSymbols, KnownPlaces) {
  const auto& symbols = byte_symbols();
  EXPECT_EQ(symbols[0x00], 0x100u);
  EXPECT_EQ(symbols['\n'], 0x10Au);
  EXPECT_EQ(symbols[' '], 0x120u);
  EXPECT_EQ(symbols['!'], 0x21u);
  EXPECT_EQ(symbols['~'], 0x7Eu);
  EXPECT_EQ(symbols[0x7F], 0x121u);
  EXPECT_EQ(symbols[0x80], 0x122u);
  EXPECT_EQ(symbols[0xA0], 0x142u);
  EXPECT_EQ(symbols[0xA1], 0xA1u);
  EXPECT_EQ(symbols[0xAC], 0xACu);
  EXPECT_EQ(symbols[0xAD], 0x143u);
  EXPECT_EQ(symbols[0xFF], 0xFFu);
}

TEST(ByteSymbols, OneToOne) {
  std::set<char32_t> seen;
  for (int byte = 0; byte < 256; ++byte) {
    seen.insert(byte_symbols()[static_cast<size_t>(byte)]);
    EXPECT_EQ(symbol_byte(byte_symbols()[static_cast<size_t>(byte)]), byte);
  }
  EXPECT_EQ(seen.size(), 256u);
  int none = 0;
  for (char32_t c = 0; c < 0x200; ++c) none += symbol_byte(c) < 0;
  EXPECT_EQ(none, 0x200 - 256);
}

TEST(ByteSymbols, SpellingRoundTrip) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  std::string back;
  EXPECT_TRUE(unspell(spell(all), back));
  EXPECT_EQ(back, all);
  EXPECT_FALSE(unspell("a b", back));           // a space is never spelled as itself
  EXPECT_FALSE(unspell("\xE4\xB8\xAD", back));  // nor a CJK character
  EXPECT_FALSE(unspell("\xFF", back));
}

}  // namespace
}  // namespace kz::text
