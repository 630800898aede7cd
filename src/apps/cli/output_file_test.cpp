#include "apps/cli/output_file.h"

#include "apps/cli/text.h"

#include <gtest/gtest.h>
#include <kazeia/error.h>

#include <filesystem>

namespace kz::cli {
namespace {

namespace fs = std::filesystem;

struct OutputFileTest : testing::Test {
  fs::path folder = fs::temp_directory_path() / ("kz-output-" + std::to_string(getpid()));
  std::string path = (folder / "rows.f32").string();
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }

  static void write(OutputFile& file, const std::string& text) { file.write(std::as_bytes(std::span(text))); }
  int64_t n_files() const { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); }
};

TEST_F(OutputFileTest, AppearsWhenCommitted) {
  OutputFile file(path);
  write(file, "new");
  EXPECT_FALSE(fs::exists(path));
  file.commit();
  EXPECT_EQ(read_bytes(path), "new");
  EXPECT_EQ(n_files(), 1);
}

TEST_F(OutputFileTest, LeavesTheOldFileWhenDropped) {
  {
    OutputFile first(path);
    write(first, "old");
    first.commit();
  }
  {
    OutputFile second(path);
    write(second, "half");
  }
  EXPECT_EQ(read_bytes(path), "old");
  EXPECT_EQ(n_files(), 1);
}

TEST_F(OutputFileTest, RefusesWhatItCannotReplace) {
  EXPECT_THROW(OutputFile file("/nowhere/at/all/rows.f32"), Error);
  EXPECT_THROW(OutputFile file(folder.string()), Error);
  EXPECT_THROW(OutputFile file("/dev/null"), Error);
}

}  // namespace
}  // namespace kz::cli
