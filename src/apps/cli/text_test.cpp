#include "apps/cli/text.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <cstdio>

namespace kz::cli {
namespace {

TEST(ResolveEscapes, KnowsTheDocumentedOnes) {
  EXPECT_EQ(resolve_escapes("a\\nb\\tc\\rd"), "a\nb\tc\rd");
  EXPECT_EQ(resolve_escapes("\\\\n \\\" \\'"), "\\n \" '");
  EXPECT_EQ(resolve_escapes("\\x41\\xc3\\xA9"), "A\xc3\xa9");
}

TEST(ResolveEscapes, LeavesEverythingElse) {
  EXPECT_EQ(resolve_escapes("\\d+ \\x4 \\xzz \\"), "\\d+ \\x4 \\xzz \\");
  EXPECT_EQ(resolve_escapes(std::string("\0\\", 2)), std::string("\0\\", 2));
}

TEST(Printable, KeepsUtf8AndShowsTheRest) {
  EXPECT_EQ(printable("\xc3\xa9 \xf0\x9f\xa6\x99"), "\xc3\xa9 \xf0\x9f\xa6\x99");
  EXPECT_EQ(printable(std::string("\0\x1b[A\n", 5)), "\\x00\\x1b[A\\n");
  EXPECT_EQ(printable("\xc3"), "\\xc3");
  EXPECT_EQ(printable("\xc0\x80"), "\\xc0\\x80");           // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a surrogate pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");  // a C1 control starts escape sequences, too
}

TEST(OneLine, HasNoLineEnds) { EXPECT_EQ(one_line("a\nb\x1b\n"), "a b\\x1b"); }

TEST(SizeText, PicksAUnit) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(1023), "1023 B");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text(int64_t{5} << 30), "5.0 GiB");
}

TEST(Table, AlignsByCharactersNotBytes) {
  EXPECT_EQ(table({{"\xc3\xa9", "1"}, {"ab", "10"}}, {1}), "\xc3\xa9    1\nab  10\n");
}

TEST(MemoryLine, AddsUp) {
  const std::vector<MemoryItem> items = {{"weights", 2048, 1024}, {"KV", 1024, 0}};
  EXPECT_EQ(memory_line(items), "3.0 KiB: weights 2.0 KiB (1.0 KiB of it pages of the file), KV 1.0 KiB");
}

TEST(ReadBytes, ChangesNothing) {
  char path[] = "/tmp/kz-read-bytes-XXXXXX";
  const int descriptor = mkstemp(path);
  ASSERT_GE(descriptor, 0);
  const std::string bytes("line\r\n\r\n  \0\xff\\n no end", 22);
  ASSERT_EQ(write(descriptor, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  close(descriptor);
  EXPECT_EQ(read_bytes(path), bytes);
  unlink(path);
}

TEST(ReadBytes, NamesTheFileAndTheReason) {
  try {
    read_bytes("/nowhere/at/all");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "/nowhere/at/all: cannot open: No such file or directory");
  }
  EXPECT_THROW(read_bytes("/tmp"), Error);
}

}  // namespace
}  // namespace kz::cli
