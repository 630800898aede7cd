#include "core/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "core/error.h"

namespace kz {
namespace {

namespace fs = std::filesystem;

/// A folder of its own for each test.
class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "kz-file-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string make(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

  size_t entries() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  std::string folder_;
};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Runs an action that must fail as an io error that names the file; returns the message.
std::string io_error(const std::string& name, const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::io) << e.what();
    EXPECT_NE(std::string(e.what()).find(name), std::string::npos) << e.what();
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  }
  ADD_FAILURE() << "no error for " << name;
  return "";
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A text that is a little longer than two pages of any usual size, each byte telling its place.
std::string long_text() {
  std::string text(2 * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + 777, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>((i * 31 + i / 256) & 0xff);
  return text;
}

size_t open_descriptors() { return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {})); }

// --- MappedFile ---

TEST_F(FileTest, MapsAWholeFile) {
  const std::string text = long_text();
  const std::string name = make("a.bin", text);
  const size_t before = open_descriptors();
  {
    EXPECT_EQ(MappedFile::open(name).size_bytes(), text.size());
  }
  EXPECT_EQ(open_descriptors(), before);
  const MappedFile file = MappedFile::open(name);
  EXPECT_EQ(open_descriptors(), before + 1);  // the one of read()
  EXPECT_EQ(text_of(file.bytes()), text);
  EXPECT_EQ(file.size_bytes(), text.size());
  EXPECT_EQ(file.name(), name);
}

TEST_F(FileTest, MapsAWindowAtAnyOffset) {
  const std::string text = long_text();
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const int fd = open(make("a.bin", text).c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1}, uint64_t{32}, page - 1, page, page + 1, text.size() - 1}) {
    for (const uint64_t length : {uint64_t{1}, uint64_t{500}, page, uint64_t{0}}) {
      if (offset + length > text.size()) continue;
      const MappedFile window = MappedFile::open(fd, offset, length, "part");
      const uint64_t expected = length == 0 ? text.size() - offset : length;
      ASSERT_EQ(text_of(window.bytes()), text.substr(offset, expected)) << offset << " " << length;
    }
  }
  const MappedFile window = MappedFile::open(fd, 3, 10, "part");
  ASSERT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);  // still open and ours
  close(fd);
  EXPECT_EQ(text_of(window.bytes()), text.substr(3, 10));  // and the mapping outlives it
}

TEST_F(FileTest, ReadsPastTheMapping) {
  const std::string text = long_text();
  const std::string name = make("a.bin", text);
  const int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC);
  const MappedFile window = MappedFile::open(fd, 3, text.size() - 7, "part");
  close(fd);
  std::string found(text.size() - 10, '\0');
  window.read(2, std::as_writable_bytes(std::span(found)));
  EXPECT_EQ(found, text.substr(5, found.size()));
  window.read_ahead(0, text.size());
  window.drop_cached(0, 100);
  window.check_size();
  fs::resize_file(name, 4000);
  const std::string message = io_error("part", [&] { window.read(2, std::as_writable_bytes(std::span(found))); });
  EXPECT_TRUE(contains(message, "ends at byte 4000")) << message;
  EXPECT_TRUE(contains(io_error("part", [&] { window.check_size(); }), "ends at byte 4000"));
}

TEST_F(FileTest, AStampChangesWhenTheFileIsWrittenTo) {
  const std::string name = make("a.bin", "0123456789");
  const MappedFile file = MappedFile::open(name);
  const FileStamp first = file.stamp();
  EXPECT_EQ(first, MappedFile::open(name).stamp());
  EXPECT_EQ(first.size_bytes, 10u);
  const auto modified = fs::last_write_time(name);
  do {  // clocks of file systems tick in milliseconds
    std::fstream(name, std::ios::in | std::ios::out | std::ios::binary) << "x";
    fs::last_write_time(name, modified);
  } while (file.stamp() == first);
  EXPECT_EQ(file.stamp().modified_ns, first.modified_ns);  // set back; the time of the change cannot be
  EXPECT_EQ(file.stamp().inode, first.inode);
}

TEST_F(FileTest, RefusesAWindowOutsideTheFile) {
  const int fd = open(make("a.bin", "0123456789").c_str(), O_RDONLY | O_CLOEXEC);
  const uint64_t most = UINT64_MAX;
  const std::pair<uint64_t, uint64_t> windows[] = {{10, 0}, {10, 1},   {11, 0},   {0, 11},
                                                   {5, 6},  {most, 0}, {1, most}, {most, 2}};
  for (const auto& [offset, length] : windows) {
    const std::string message =
        io_error("model.gguf", [&, o = offset, l = length] { MappedFile::open(fd, o, l, "model.gguf"); });
    EXPECT_TRUE(contains(message, "outside the file of 10 bytes")) << message;
  }
  close(fd);
}

TEST_F(FileTest, RefusesWhatIsNoFile) {
  EXPECT_TRUE(contains(io_error("none.gguf", [&] { MappedFile::open(path("none.gguf")); }), "No such file"));
  EXPECT_TRUE(contains(io_error(folder_, [&] { MappedFile::open(folder_); }), "is a directory"));
  EXPECT_TRUE(contains(io_error("empty", [&] { MappedFile::open(make("empty", "")); }), "is empty"));
  EXPECT_TRUE(contains(io_error("/dev/null", [&] { MappedFile::open("/dev/null"); }), "not a regular file"));
  EXPECT_TRUE(contains(io_error("\"\"", [&] { MappedFile::open(""); }), "path is empty"));
  const std::string with_zero = make("a", "text") + std::string(1, '\0') + "b";
  EXPECT_TRUE(contains(io_error("a", [&] { MappedFile::open(with_zero); }), "zero byte"));
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_TRUE(contains(io_error("pipe", [&] { MappedFile::open(path("pipe")); }), "not a regular file"));
  EXPECT_TRUE(contains(io_error("closed", [&] { MappedFile::open(-1, 0, 0, "closed"); }), "Bad file descriptor"));
}

TEST_F(FileTest, OpensANonAsciiPath) {
  const std::string name =
      make("mod\xc3\xa8le \xe4\xb8\xad\xe6\x96\x87 \xff.gguf", "text");  // the last byte is no UTF-8
  EXPECT_EQ(text_of(MappedFile::open(name).bytes()), "text");
  EXPECT_EQ(read_text_file(name), "text");
}

TEST_F(FileTest, MovesTheMapping) {
  MappedFile a = MappedFile::open(make("a", "first"));
  MappedFile b = MappedFile::open(make("b", "second"));
  const std::byte* place = b.bytes().data();
  a = std::move(b);
  EXPECT_EQ(a.bytes().data(), place);
  EXPECT_EQ(text_of(a.bytes()), "second");
  EXPECT_EQ(b.size_bytes(), 0u);  // NOLINT(bugprone-use-after-move): emptied on purpose
  const MappedFile c(std::move(a));
  EXPECT_EQ(text_of(c.bytes()), "second");
  EXPECT_TRUE(a.bytes().empty());  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(MappedFile().bytes().empty());
}

TEST_F(FileTest, AdviceChangesNoContent) {
  const std::string text = long_text();
  const int fd = open(make("a.bin", text).c_str(), O_RDONLY | O_CLOEXEC);
  for (const uint64_t offset : {0, 5, 5000}) {
    const MappedFile file = MappedFile::open(fd, offset, 0, "a.bin");
    for (const uint64_t at : {uint64_t{0}, uint64_t{1}, uint64_t{4095}, uint64_t{9000}, UINT64_MAX}) {
      for (const uint64_t length : {uint64_t{0}, uint64_t{1}, uint64_t{8192}, UINT64_MAX}) {
        file.will_need(at, length);
        file.not_needed(at, length);
      }
    }
    EXPECT_EQ(text_of(file.bytes()), text.substr(offset));
  }
  close(fd);
  MappedFile().will_need(0, 10);
  MappedFile().not_needed(0, 10);
}

// --- AtomicFile ---

TEST_F(FileTest, CommitPutsTheWholeFileInPlace) {
  const std::string name = make("out.gguf", "old");
  {
    AtomicFile file(name);
    file.write(bytes_of("hello "));
    file.write(bytes_of("world"));
    EXPECT_EQ(file.size_bytes(), 11u);
    file.write_at(0, bytes_of("J"));
    file.write_at(13, bytes_of("!"));  // leaves two zero bytes
    EXPECT_EQ(file.size_bytes(), 14u);
    file.write(bytes_of("?"));
    EXPECT_EQ(read_text_file(name), "old");
    file.commit();
    EXPECT_EQ(read_text_file(name), std::string("Jello world\0\0!?", 15));
    EXPECT_THROW(file.commit(), Error);
    EXPECT_THROW(file.write(bytes_of("x")), Error);
  }
  EXPECT_EQ(read_text_file(name), std::string("Jello world\0\0!?", 15));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, WithoutCommitNothingChanges) {
  const std::string name = make("out", "old");
  {
    AtomicFile file(name);
    file.write(bytes_of("new"));
    EXPECT_EQ(entries(), 2u);
  }
  {
    const AtomicFile other(path("never"));
  }
  EXPECT_EQ(read_text_file(name), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, AnEmptyFileCanBeCommitted) {
  AtomicFile file(path("empty"));
  file.commit();
  EXPECT_EQ(fs::file_size(path("empty")), 0u);
}

TEST_F(FileTest, TwoWritersOfOneNameDoNotMix) {
  AtomicFile a(path("out"));
  AtomicFile b(path("out"));
  a.write(bytes_of("aaaa"));
  b.write(bytes_of("bb"));
  a.commit();
  EXPECT_EQ(read_text_file(path("out")), "aaaa");
  b.commit();
  EXPECT_EQ(read_text_file(path("out")), "bb");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, KeepsPermissionsAndLinks) {
  const std::string name = make("real", "old");
  ASSERT_EQ(chmod(name.c_str(), 0640), 0);
  fs::create_symlink("real", path("link"));
  AtomicFile file(path("link"));
  file.write(bytes_of("new"));
  file.commit();
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_text_file(name), "new");
  EXPECT_EQ(fs::status(name).permissions(), fs::perms(0640));
}

TEST_F(FileTest, TheLongestNameCanBeWritten) {
  const std::string name = path(std::string(255, 'n'));
  AtomicFile file(name);
  file.commit();
  EXPECT_TRUE(fs::exists(name));
}

TEST_F(FileTest, RefusesWhatCannotBeWritten) {
  io_error("out", [&] { AtomicFile(path("missing/out")); });
  EXPECT_TRUE(contains(io_error(folder_, [&] { AtomicFile file(folder_); }), "is a directory"));
  EXPECT_TRUE(contains(io_error("new/", [&] { AtomicFile(path("new/")); }), "is a directory"));
  EXPECT_TRUE(contains(io_error("/dev/null", [&] { AtomicFile("/dev/null"); }), "not a regular file"));
  EXPECT_TRUE(contains(io_error("\"\"", [&] { AtomicFile(""); }), "path is empty"));
  io_error("n", [&] { AtomicFile(path(std::string(300, 'n'))).commit(); });
  EXPECT_EQ(entries(), 0u);
}

// --- read_text_file ---

TEST_F(FileTest, ReadsText) {
  EXPECT_EQ(read_text_file(make("a", long_text())), long_text());
  EXPECT_EQ(read_text_file(make("empty", "")), "");
  EXPECT_TRUE(contains(read_text_file("/proc/self/status"), "Name:"));  // reports size 0
}

TEST_F(FileTest, ReadsAPipe) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const std::string text = long_text();
  std::thread writer([&] { std::ofstream(path("pipe"), std::ios::binary) << text; });
  EXPECT_EQ(read_text_file(path("pipe")), text);
  writer.join();
}

TEST_F(FileTest, RefusesTextThatIsTooLong) {
  const std::string name = make("a", "0123456789");
  EXPECT_EQ(read_text_file(name, 10), "0123456789");
  for (const std::string& file : {name, std::string("/dev/zero")}) {
    try {
      read_text_file(file, 9);
      FAIL() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_file);
      EXPECT_TRUE(contains(e.what(), file) && contains(e.what(), "at most 9")) << e.what();
    }
  }
}

TEST_F(FileTest, NamesTheTextFileThatCannotBeRead) {
  EXPECT_TRUE(contains(io_error("none.txt", [&] { read_text_file(path("none.txt")); }), "No such file"));
  EXPECT_TRUE(contains(io_error(folder_, [&] { read_text_file(folder_); }), "is a directory"));
}

}  // namespace
}  // namespace kz
