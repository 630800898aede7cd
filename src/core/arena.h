// Memory that the engine owns, in large named pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace kz {

/// Where the pages of an arena come from. Nothing but the allocator and the NPU session can tell them apart.
enum class MemoryKind {
  anonymous,  ///< private pages of this process
  memfd,      ///< a memory file that another process can map (emulated NPU)
};

/// Owns one page-aligned block of one memory kind. Pages are reserved at once and committed when first touched,
/// so the size of an arena is address space, not memory, until it is used. Movable, not copyable.
class Arena {
 public:
  Arena() = default;
  /// Reserves size_bytes (rounded up to the machine's page). Throws Error(out_of_memory) with the name and size.
  Arena(std::string name, size_t size_bytes, MemoryKind kind = MemoryKind::anonymous);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }
  const std::string& name() const { return name_; }
  MemoryKind kind() const { return kind_; }
  /// The descriptor of a memfd arena, or -1.
  int fd() const { return fd_; }

  /// Asks for large pages where the system has them (fewer look-ups in one sweep over much memory); a wish, no promise.
  void prefer_large_pages();

  /// Gives the pages of [offset, offset + length) back to the system; their content becomes zero (whole pages only).
  void discard(size_t offset, size_t length);

 private:
  void release() noexcept;

  std::string name_;
  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
  MemoryKind kind_ = MemoryKind::anonymous;
  int fd_ = -1;
};

/// Hands out 64-byte-aligned F32 tensors from a block, one after the other; reset() starts again. Never allocates.
/// Built without a block it only measures: take() returns views without data and used_bytes() is the need.
class Scratch {
 public:
  Scratch() = default;  ///< measures
  Scratch(std::byte* data, size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}

  /// A contiguous {cols, rows}. Throws Error(internal) when the block is too small.
  Tensor take(int64_t cols, int64_t rows);
  void reset() { used_bytes_ = 0; }
  size_t used_bytes() const { return used_bytes_; }
  bool measuring() const { return data_ == nullptr; }

 private:
  std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
  size_t used_bytes_ = 0;
};

/// One line of the memory account: what, how much, and how much of it lies in files that the kernel may drop.
struct MemoryUse {
  std::string what;  ///< "weights", "KV", "recurrent state", "scratch", "vocabulary"
  int64_t size_bytes = 0;
  int64_t file_bytes = 0;
};

}  // namespace kz
