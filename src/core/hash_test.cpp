#include "core/hash.h"

#include <gtest/gtest.h>

#include <vector>

namespace kz {
namespace {

// Python: hashlib.blake2b(text, digest_size=32).hexdigest()
TEST(Digest, IsBlake2b) {
  const auto digest = [](std::string_view text) {
    Digest d;
    d.add(text);
    return d.finish();
  };
  EXPECT_EQ(digest(""), "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  EXPECT_EQ(digest("abc"), "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  EXPECT_EQ(digest(std::string(128, 'a')), "ae2aa48507885c4c950fb809b2076f959cde9f8ea6da260d9a3587df33dac450");
  EXPECT_EQ(digest(std::string(1000, 'a')), "e00b0ddbf1e2cdaf5c898e1a5e8826ea3a2c339bcf2a478da2e5fca9ff126672");
}

TEST(Digest, PiecesDoNotMatter) {
  Digest whole, parts;
  const std::string text(777, 'x');
  whole.add(text);
  for (size_t at = 0; at < text.size(); at += 37) parts.add(std::string_view(text).substr(at, 37));
  EXPECT_EQ(whole.finish(), parts.finish());
}

TEST(Checksum, SeesEveryByteAndTheLength) {
  std::vector<std::byte> bytes(1000, std::byte{7});
  const uint64_t sum = checksum(bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{1};
    EXPECT_NE(checksum(bytes), sum) << i;
    bytes[i] ^= std::byte{1};
  }
  EXPECT_EQ(checksum(bytes), sum);
  std::vector<std::byte> zeros(64);
  EXPECT_NE(checksum(zeros), checksum(std::span(zeros).first(63)));
  EXPECT_NE(checksum({}), checksum(zeros));
}

}  // namespace
}  // namespace kz
