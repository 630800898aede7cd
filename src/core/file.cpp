#include "core/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace kz {
namespace {

/// Closes a descriptor that this file opened.
class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

std::string reason_of(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw Error(ErrorCode::io, "file " + name + ": " + what);
}

[[noreturn]] void fail_errno(const std::string& name, const std::string& action) {
  const int error = errno;
  fail(name, "cannot " + action + ": " + reason_of(error));
}

/// A path with a zero byte would silently name another file.
void check_path(const std::string& path) {
  if (path.empty()) fail("\"\"", "the path is empty");
  if (path.find('\0') != std::string::npos) fail(path.substr(0, path.find('\0')), "the path contains a zero byte");
}

int open_retrying(const std::string& path, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

int open_to_read(const std::string& path, int more_flags) {
  check_path(path);
  const int fd = open_retrying(path, O_RDONLY | more_flags);
  if (fd < 0) fail_errno(path, "open");
  return fd;
}

/// Size of a regular file; anything else is refused.
uint64_t regular_size(int fd, const std::string& name) {
  struct stat facts;
  if (fstat(fd, &facts) != 0) fail_errno(name, "examine");
  if (S_ISDIR(facts.st_mode)) fail(name, "is a directory, expected a file");
  if (!S_ISREG(facts.st_mode)) fail(name, "is not a regular file");
  return static_cast<uint64_t>(facts.st_size);
}

uint64_t page_bytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

/// The folder that holds a path.
std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// What a symbolic link to an existing file points to, so that the link stays when its target is replaced.
std::string link_target(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) fail_errno(path, "resolve");
  std::string target(resolved);
  free(resolved);
  return target;
}

/// Runs madvise on the part of the window that consists of whole pages of the mapping; advice may fail silently.
void advise(const MappedFile& file, const void* map, uint64_t offset, uint64_t length, int advice, bool widen) {
  const uint64_t size = file.size_bytes();
  if (map == nullptr || offset >= size) return;
  const uint64_t page = page_bytes();
  const uint64_t lead = static_cast<uint64_t>(file.bytes().data() - static_cast<const std::byte*>(map));
  uint64_t begin = lead + offset;
  uint64_t end = begin + std::min(length, size - offset);
  if (widen) {
    begin = begin / page * page;
  } else {  // a page that is shared with bytes outside stays; the last page of the window ends with the file
    begin = (begin + page - 1) / page * page;
    if (end < lead + size) end = end / page * page;
  }
  if (begin >= end) return;
  std::byte* start = const_cast<std::byte*>(static_cast<const std::byte*>(map)) + begin;
  (void)madvise(start, end - begin, advice);
}

}  // namespace

MappedFile MappedFile::open(const std::string& path) {
  // O_NONBLOCK: a pipe without a writer is refused below instead of hanging here; regular files ignore it.
  const OpenFile file(open_to_read(path, O_NONBLOCK));
  return open(file.fd(), 0, 0, path);
}

MappedFile MappedFile::open(int fd, uint64_t offset, uint64_t length, const std::string& name) {
  const uint64_t file_bytes = regular_size(fd, name);
  if (file_bytes == 0) fail(name, "is empty");
  if (offset >= file_bytes || length > file_bytes - offset) {
    const std::string window = length == 0 ? std::to_string(offset) + " to the end"
                                           : std::to_string(offset) + " + " + std::to_string(length) + " bytes";
    fail(name, "window at " + window + " lies outside the file of " + std::to_string(file_bytes) + " bytes");
  }
  const uint64_t window_bytes = length == 0 ? file_bytes - offset : length;
  const uint64_t lead = offset % page_bytes();
  if (window_bytes > std::numeric_limits<size_t>::max() - lead) fail(name, "is larger than the address space");
  const uint64_t map_bytes = lead + window_bytes;
  void* map = mmap(nullptr, map_bytes, PROT_READ, MAP_PRIVATE, fd, static_cast<off_t>(offset - lead));
  if (map == MAP_FAILED) fail_errno(name, "map " + std::to_string(window_bytes) + " bytes");
  MappedFile result;
  result.start_ = offset;
  result.map_ = map;
  result.map_bytes_ = map_bytes;
  result.data_ = static_cast<const std::byte*>(map) + lead;
  result.size_bytes_ = window_bytes;
  result.name_ = name;
  result.fd_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (result.fd_ < 0) fail_errno(name, "keep open");
  return result;
}

MappedFile::~MappedFile() { release(); }

MappedFile::MappedFile(MappedFile&& other) noexcept
    : name_(std::move(other.name_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      map_(std::exchange(other.map_, nullptr)),
      map_bytes_(std::exchange(other.map_bytes_, 0)),
      fd_(std::exchange(other.fd_, -1)),
      start_(other.start_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  release();
  name_ = std::move(other.name_);
  data_ = std::exchange(other.data_, nullptr);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  map_ = std::exchange(other.map_, nullptr);
  map_bytes_ = std::exchange(other.map_bytes_, 0);
  fd_ = std::exchange(other.fd_, -1);
  start_ = other.start_;
  return *this;
}

void MappedFile::release() noexcept {
  if (map_ != nullptr) munmap(map_, map_bytes_);
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  map_ = nullptr;
  map_bytes_ = 0;
  data_ = nullptr;
  size_bytes_ = 0;
}

void MappedFile::will_need(uint64_t offset, uint64_t length) const {
  advise(*this, map_, offset, length, MADV_WILLNEED, true);
}

void MappedFile::not_needed(uint64_t offset, uint64_t length) const {
  advise(*this, map_, offset, length, MADV_DONTNEED, false);
}

void MappedFile::read(uint64_t offset, std::span<std::byte> to) const {
  KZ_CHECK(offset <= size_bytes_ && to.size() <= size_bytes_ - offset);
  while (!to.empty()) {
    const ssize_t got = pread(fd_, to.data(), to.size(), static_cast<off_t>(start_ + offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno(name_, "read at byte " + std::to_string(start_ + offset));
    if (got == 0) {
      check_size();  // names where the file ends now, which may be far before this read
      fail(name_, "ended at byte " + std::to_string(start_ + offset) + " for a while, expected at least " +
                      std::to_string(start_ + size_bytes_) + " as when it was opened");
    }
    offset += static_cast<uint64_t>(got);
    to = to.subspan(static_cast<size_t>(got));
  }
}

void MappedFile::check_size() const {
  const uint64_t now = regular_size(fd_, name_);
  if (now >= start_ + size_bytes_) return;
  fail(name_, "ends at byte " + std::to_string(now) + ", expected at least " + std::to_string(start_ + size_bytes_) +
                  " as when it was opened");
}

void MappedFile::read_ahead(uint64_t offset, uint64_t length) const {
  (void)posix_fadvise(fd_, static_cast<off_t>(start_ + offset), static_cast<off_t>(length), POSIX_FADV_WILLNEED);
}

void MappedFile::drop_cached(uint64_t offset, uint64_t length) const {
  (void)posix_fadvise(fd_, static_cast<off_t>(start_ + offset), static_cast<off_t>(length), POSIX_FADV_DONTNEED);
}

FileStamp MappedFile::stamp() const {
  struct stat facts;
  if (fstat(fd_, &facts) != 0) fail_errno(name_, "examine");
  constexpr int64_t kSecond = 1000000000;
  return {static_cast<uint64_t>(facts.st_size), facts.st_ino, facts.st_mtim.tv_sec * kSecond + facts.st_mtim.tv_nsec,
          facts.st_ctim.tv_sec * kSecond + facts.st_ctim.tv_nsec, start_};
}

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  check_path(path);
  struct stat facts;
  const bool exists = stat(path.c_str(), &facts) == 0;
  if (path.back() == '/' || (exists && S_ISDIR(facts.st_mode))) fail(path, "is a directory, expected a file");
  // Renaming over a device or a pipe would remove it.
  if (exists && !S_ISREG(facts.st_mode)) fail(path, "is not a regular file");
  if (exists) path_ = link_target(path);
  // A short name of its own, because the final one may be as long as the file system allows. O_EXCL: never write into
  // a file that somebody else made; two writers in one folder get two names.
  const std::string stem = folder_of(path_) + "/.kazeia-" + std::to_string(getpid()) + "-";
  for (int attempt = 0; fd_ < 0 && attempt < 1000; ++attempt) {
    temporary_ = stem + std::to_string(attempt) + ".part";
    fd_ = open_retrying(temporary_, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd_ < 0 && errno != EEXIST) fail_errno(path, "create");
  }
  if (fd_ < 0) fail(path, "cannot create it: too many unfinished files beside it");
  if (exists) (void)fchmod(fd_, facts.st_mode & 07777);  // an existing file keeps its permissions where possible
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::reserve(uint64_t size_bytes) {
  KZ_CHECK(fd_ >= 0);
  if (fallocate(fd_, 0, 0, static_cast<off_t>(size_bytes)) == 0) return;
  if (errno == ENOSPC || errno == EFBIG || errno == EDQUOT) {
    fail_errno(path_, "reserve " + std::to_string(size_bytes) + " bytes");
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) { write_at(size_bytes_, bytes); }

void AtomicFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  KZ_CHECK(fd_ >= 0);
  KZ_CHECK(offset <= static_cast<uint64_t>(std::numeric_limits<off_t>::max()) - bytes.size());
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_errno(path_, "write");
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
    uint64_t size = size_bytes_;
    while (size < offset && !size_bytes_.compare_exchange_weak(size, offset)) {
    }
  }
}

void AtomicFile::commit() {
  KZ_CHECK(fd_ >= 0);
  if (fsync(fd_) != 0) fail_errno(path_, "write it to the disk");
  if (close(std::exchange(fd_, -1)) != 0) fail_errno(path_, "finish writing");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail_errno(path_, "put it in place");
  temporary_.clear();
  // The new name itself must survive a power cut. The content is complete and in place already, so a file system
  // that cannot sync folders is no error.
  const OpenFile folder(open_retrying(folder_of(path_), O_RDONLY | O_DIRECTORY));
  if (folder.fd() >= 0) (void)fsync(folder.fd());
}

std::string read_text_file(const std::string& path, uint64_t max_bytes) {
  const OpenFile file(open_to_read(path, 0));
  struct stat facts;
  if (fstat(file.fd(), &facts) != 0) fail_errno(path, "examine");
  if (S_ISDIR(facts.st_mode)) fail(path, "is a directory, expected a file");
  const auto check_size = [&](uint64_t size_bytes) {
    if (size_bytes <= max_bytes) return;
    throw Error(ErrorCode::bad_file, "file " + path + ": has " + std::to_string(size_bytes) +
                                         " bytes or more, expected at most " + std::to_string(max_bytes));
  };
  const uint64_t size = static_cast<uint64_t>(facts.st_size);
  check_size(size);
  // Pipes and files of /proc report size 0: read until the end, whatever the size said.
  std::string content;
  content.resize(std::max<uint64_t>(size + 1, 4096));
  size_t used = 0;
  while (true) {
    const ssize_t got = read(file.fd(), content.data() + used, content.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno(path, "read");
    if (got == 0) break;
    used += static_cast<size_t>(got);
    check_size(used);
    if (used == content.size()) content.resize(2 * used);
  }
  content.resize(used);
  return content;
}

}  // namespace kz
