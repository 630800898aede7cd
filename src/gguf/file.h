// A checked directory of the keys and tensors of a GGUF model (one file or all its shards).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/tensor.h"

namespace kz {
class MappedFile;
}

namespace kz::gguf {

/// Value types of metadata, by their ids in the file.
enum class ValueType : int32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};
std::string_view value_type_name(ValueType type);

/// One key of the metadata. The bytes stay in the mapped file until asked for.
struct KeyValue {
  std::string_view key;
  ValueType type = ValueType::u8;
  ValueType element = ValueType::u8;  ///< element type of an array
  uint64_t count = 1;                 ///< elements of an array, else 1
  std::span<const std::byte> bytes;   ///< the value as it lies in the file (an array without its type and count)
};

/// One tensor of the directory. Its bytes are touched by nobody but who asks for them.
struct TensorInfo {
  std::string_view name;
  DType dtype = DType::f32;
  int n_dims = 0;
  std::array<int64_t, 4> ne{1, 1, 1, 1};
  uint64_t offset = 0;  ///< from the start of its shard's data
  uint64_t size_bytes = 0;
  int shard = 0;
};

/// An opened model. Opening checks everything that the container promises (bounds, types, sizes, names), so that
/// look-ups after it cannot leave the file. Movable; views stay valid while it lives.
class File {
 public:
  /// Opens a file, or all shards when the path names the first of a split model. Throws Error(io | bad_file |
  /// unsupported).
  static File open(const std::string& path);
  /// Opens [offset, offset + length) of a descriptor (length 0: to its end); the descriptor stays the caller's.
  static File open(int fd, uint64_t offset, uint64_t length, const std::string& name);
  /// The same over bytes in memory, which outlive the File; `name` stands in messages.
  static File view(std::span<const std::byte> bytes, const std::string& name);
  ~File();
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;

  const std::string& name() const;  ///< path of the (first) file, for messages
  int version() const;              ///< 2 or 3
  uint64_t alignment() const;
  uint64_t size_bytes() const;  ///< of all shards
  int n_shards() const;
  const std::string& shard_name(int shard) const;  ///< path of shard 0 to n_shards() - 1
  bool padded_end() const;                         ///< bytes (padding) follow the last tensor, or the keys without one

  std::span<const KeyValue> keys() const;  ///< in file order
  const KeyValue* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // Typed look-up. Each accepts every stored type that holds the value exactly (any integer width for an integer;
  // a bool where integers are wanted); otherwise, or outside [lo, hi], throws Error(bad_file) that names file, key,
  // found and expected. The *_or forms return the default when the key is absent.
  int64_t integer(std::string_view key, int64_t lo, int64_t hi) const;
  int64_t integer_or(std::string_view key, int64_t fallback, int64_t lo, int64_t hi) const;
  double number(std::string_view key) const;  ///< finite
  double number_or(std::string_view key, double fallback) const;
  bool boolean_or(std::string_view key, bool fallback) const;  ///< non-zero is true
  std::string_view text(std::string_view key) const;           ///< valid UTF-8 is not promised
  std::string_view text_or(std::string_view key, std::string_view fallback) const;
  /// An array of integers (or bools), or a scalar as one element.
  std::vector<int64_t> integers(std::string_view key) const;
  std::vector<float> floats(std::string_view key) const;  ///< as integers(), of numbers; never NaN
  std::vector<std::string_view> texts(std::string_view key) const;

  std::span<const TensorInfo> tensors() const;  ///< in file order, shard by shard
  const TensorInfo* find_tensor(std::string_view name) const;
  /// A view of the tensor's bytes in the mapping, shape and strides set. The mapping is read-only, whatever the
  /// pointer's type says, and aligned only as well as the file is: read blocks through memcpy.
  Tensor data(const TensorInfo& info) const;
  /// Where a tensor's bytes lie in its file. `file` is null for bytes in memory.
  struct Place {
    const MappedFile* file = nullptr;
    uint64_t offset = 0;
  };
  Place place(const TensorInfo& info) const;
  /// Copies a tensor's bytes without touching the mapping.
  void read(const TensorInfo& info, std::span<std::byte> to) const;
  /// Throws Error(io) when a file has become shorter since it was opened.
  void check_size() const;
  /// The bytes of a shard in front of its tensor data, in the mapping.
  std::span<const std::byte> directory_bytes(int shard) const;
  /// The mapping of a shard, or null for bytes in memory.
  const MappedFile* mapped(int shard) const;
  /// Tells the kernel that nothing of the mapping is needed for now: its resident pages are dropped.
  void drop_resident() const;
  /// Tells the kernel that the bytes of all tensors will be read / a tensor's bytes are not needed any more.
  void will_need(const TensorInfo& info) const;
  void not_needed(const TensorInfo& info) const;

 private:
  struct Impl;
  explicit File(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kz::gguf
