// Files: opened by path or descriptor, mapped or read, written whole or not at all.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kz {

/// What the system says about a file without reading it. Writing to a file changes at least changed_ns, which no
/// program can set.
struct FileStamp {
  uint64_t size_bytes = 0;
  uint64_t inode = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  uint64_t start = 0;  ///< of the window
  bool operator==(const FileStamp&) const = default;
};

/// A read-only window [offset, offset + length) of a file, mapped into memory. Opening touches no page.
/// The descriptor given to open() stays the caller's. The window may start at any byte: the mapping starts at the
/// page before it, with the machine's own page size.
class MappedFile {
 public:
  MappedFile() = default;
  /// Throws Error(io) that names the path and the system's reason; a directory or an empty file is an error too.
  static MappedFile open(const std::string& path);
  /// length 0 means up to the end of the file. `name` stands in messages.
  static MappedFile open(int fd, uint64_t offset, uint64_t length, const std::string& name);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }
  uint64_t size_bytes() const { return size_bytes_; }
  const std::string& name() const { return name_; }
  /// Copies bytes from `offset` on, past the mapping: none of its pages becomes resident, and a file that has become
  /// shorter is an Error(io) and no signal. For any number of threads.
  void read(uint64_t offset, std::span<std::byte> to) const;
  /// Throws Error(io) when the file has become shorter than the window since it was opened.
  void check_size() const;
  /// Tells the kernel that [offset, offset + length) will be read soon / is not needed any more (whole pages only).
  void will_need(uint64_t offset, uint64_t length) const;
  void not_needed(uint64_t offset, uint64_t length) const;
  /// The same for read(): starts to fetch it into the page cache / lets the page cache drop it.
  void read_ahead(uint64_t offset, uint64_t length) const;
  void drop_cached(uint64_t offset, uint64_t length) const;
  FileStamp stamp() const;

 private:
  void release() noexcept;
  std::string name_;
  const std::byte* data_ = nullptr;  // start of the window
  uint64_t size_bytes_ = 0;
  void* map_ = nullptr;  // start of the mapping
  uint64_t map_bytes_ = 0;
  int fd_ = -1;         // the file once more, a descriptor of its own
  uint64_t start_ = 0;  // of the window in the file
};

/// Writes a file so that its name either keeps its old content or gets the whole new one: a temporary name in the
/// same folder, synced, renamed by commit(). Destroyed without commit, it leaves nothing behind.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Asks the disk for room; Error(io) when it has none. Only a promise where the file system can give one.
  void reserve(uint64_t size_bytes);
  void write(std::span<const std::byte> bytes);
  /// Several threads may write at different places.
  void write_at(uint64_t offset, std::span<const std::byte> bytes);
  uint64_t size_bytes() const { return size_bytes_; }
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  std::atomic<uint64_t> size_bytes_{0};
};

/// The whole content of a file. Throws Error(io), or Error(bad_file) above max_bytes.
std::string read_text_file(const std::string& path, uint64_t max_bytes = uint64_t{1} << 30);

}  // namespace kz
