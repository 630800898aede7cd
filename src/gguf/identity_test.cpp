#include "gguf/identity.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace kz::gguf {
namespace {

namespace fs = std::filesystem;

const std::string kModel = KZ_SOURCE_DIR "/models/kazeia-tiny-q4_0.gguf";

TEST(Identity, FollowsContentAndStamp) {
  const std::string copy = testing::TempDir() + "kz-identity.gguf";
  fs::copy_file(kModel, copy, fs::copy_options::overwrite_existing);
  const Identity original = identify(File::open(kModel)), same = identify(File::open(copy));
  EXPECT_EQ(original.content.size(), 64u);
  EXPECT_EQ(original.content, same.content);
  EXPECT_NE(original.stamp, same.stamp);  // another file
  EXPECT_EQ(same.stamp, identify(File::open(copy)).stamp);
  std::fstream(copy, std::ios::in | std::ios::out | std::ios::binary).seekp(-1, std::ios::end).put('!');
  EXPECT_NE(identify(File::open(copy)).content, original.content);
  fs::remove(copy);
}

TEST(Identity, BytesInMemoryHaveNone) {
  std::ifstream in(kModel, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const Identity identity = identify(File::view(std::as_bytes(std::span(bytes)), "memory"));
  EXPECT_EQ(identity.content, "");
  EXPECT_EQ(identity.stamp, "");
}

}  // namespace
}  // namespace kz::gguf
