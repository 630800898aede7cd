#include "core/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace kz {
namespace {

constexpr size_t kLine = 64;  // one cache line, and the widest vector register

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

[[noreturn]] void no_memory(const std::string& name, size_t size_bytes, const std::string& reason) {
  throw Error(ErrorCode::out_of_memory,
              "cannot reserve " + std::to_string(size_bytes) + " bytes for " + name + ": " + reason);
}

std::string system_reason() { return std::generic_category().message(errno); }

}  // namespace

Arena::Arena(std::string name, size_t size_bytes, MemoryKind kind) : name_(std::move(name)), kind_(kind) {
  if (size_bytes == 0) return;
  const size_t page = page_bytes();
  if (size_bytes > std::numeric_limits<ptrdiff_t>::max() - page)
    no_memory(name_, size_bytes, "more than the address space");
  const size_t rounded = (size_bytes + page - 1) / page * page;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (kind == MemoryKind::memfd) {
    flags = MAP_SHARED | MAP_NORESERVE;
    fd_ = memfd_create(name_.substr(0, 200).c_str(), MFD_CLOEXEC);
    if (fd_ < 0) no_memory(name_, size_bytes, system_reason());
    if (ftruncate(fd_, static_cast<off_t>(rounded)) != 0) {
      const std::string reason = system_reason();
      release();
      no_memory(name_, size_bytes, reason);
    }
  }
  void* block = mmap(nullptr, rounded, PROT_READ | PROT_WRITE, flags, fd_, 0);
  if (block == MAP_FAILED) {
    const std::string reason = system_reason();
    release();
    no_memory(name_, size_bytes, reason);
  }
  data_ = static_cast<std::byte*>(block);
  size_bytes_ = rounded;
}

Arena::~Arena() { release(); }

Arena::Arena(Arena&& other) noexcept
    : name_(std::move(other.name_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      kind_(other.kind_),
      fd_(std::exchange(other.fd_, -1)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this == &other) return *this;
  release();
  name_ = std::move(other.name_);
  data_ = std::exchange(other.data_, nullptr);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  kind_ = other.kind_;
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

void Arena::prefer_large_pages() {
#ifdef MADV_HUGEPAGE
  if (data_ != nullptr) ::madvise(data_, size_bytes_, MADV_HUGEPAGE);  // refused where the system has none
#endif
}

void Arena::discard(size_t offset, size_t length) {
  KZ_CHECK(offset <= size_bytes_ && length <= size_bytes_ - offset);
  const size_t page = page_bytes();
  const size_t begin = (offset + page - 1) / page * page;
  const size_t end = (offset + length) / page * page;
  if (begin >= end) return;
  // Private pages come back as zeros; a memory file keeps its content unless a hole is cut into it. (Cut through the
  // descriptor: emulators of other processors say yes to MADV_REMOVE and do nothing.)
  if (kind_ == MemoryKind::memfd) {
    constexpr int kHole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    KZ_CHECK(fallocate(fd_, kHole, static_cast<off_t>(begin), static_cast<off_t>(end - begin)) == 0);
  } else {
    KZ_CHECK(madvise(data_ + begin, end - begin, MADV_DONTNEED) == 0);
  }
}

void Arena::release() noexcept {
  if (data_ != nullptr) munmap(data_, size_bytes_);
  if (fd_ >= 0) close(fd_);
  data_ = nullptr;
  size_bytes_ = 0;
  fd_ = -1;
}

Tensor Scratch::take(int64_t cols, int64_t rows) {
  KZ_CHECK(cols >= 0 && rows >= 0);
  KZ_CHECK(reinterpret_cast<uintptr_t>(data_) % kLine == 0);
  constexpr size_t kMost = std::numeric_limits<ptrdiff_t>::max() / 8;
  KZ_CHECK(cols == 0 || static_cast<size_t>(rows) <= kMost / static_cast<size_t>(cols));
  const size_t need =
      (static_cast<size_t>(cols) * static_cast<size_t>(rows) * sizeof(float) + kLine - 1) / kLine * kLine;
  if (measuring()) {
    used_bytes_ += need;
    return matrix_f32(nullptr, cols, rows);
  }
  if (need > size_bytes_ - used_bytes_) {
    throw Error(ErrorCode::internal, "scratch of " + std::to_string(size_bytes_) + " bytes is too small: " +
                                         std::to_string(used_bytes_) + " used, " + std::to_string(need) + " asked");
  }
  std::byte* place = data_ + used_bytes_;
  used_bytes_ += need;
  return matrix_f32(reinterpret_cast<float*>(place), cols, rows);
}

}  // namespace kz
