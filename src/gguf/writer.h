// Writes GGUF files: used by `kazeia quantize` and by the tests to make good and hostile files.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"

namespace kz::gguf {

/// Collects keys and tensor headers, then streams the file. What File reads and copy_of() writes back unchanged is the
/// same bytes (same version, key order, tensor order, alignment; trailing padding as in the source), provided that the
/// source has its tensors back to back in file order with padding of zeros, as every known writer makes them.
///
/// It does not judge what it is given beyond what it needs to compute sizes: names, duplicate tensors and keys of a
/// wrong type are written as told. An alignment other than 32 gets its key at the end unless the caller added one.
class Writer {
 public:
  explicit Writer(int version = 3, uint64_t alignment = 32) : version_(version), alignment_(alignment) {}
  /// A writer of everything in the file, which must outlive it. A split model becomes one file (its split.* keys go).
  static Writer copy_of(const File& file);

  // A value that its type cannot hold throws Error(bad_argument). A key that is there already gets the new value.
  void add_integer(std::string_view key, ValueType type, int64_t value);
  void add_f32(std::string_view key, float value);
  void add_bool(std::string_view key, bool value);
  void add_text(std::string_view key, std::string_view value);
  void add_integers(std::string_view key, ValueType element, std::span<const int64_t> values);
  void add_floats(std::string_view key, std::span<const float> values);
  void add_texts(std::string_view key, std::span<const std::string_view> values);
  /// Copies a key of an opened file byte for byte, or replaces the one of that name.
  void add_raw(const KeyValue& kv);

  /// Declares a tensor {ne...}; write() asks `fill` for its bytes, exactly row_bytes * rows of them, piece by piece
  /// (no fill: zeros). Throws Error(bad_argument) for a shape that has no size.
  using Fill = std::function<void(const std::function<void(std::span<const std::byte>)>& put)>;
  void add_tensor(std::string_view name, DType dtype, std::span<const int64_t> ne, Fill fill);

  /// Writes to a temporary name and renames: the target keeps its old content unless everything worked.
  /// Throws Error(io), and Error(bad_argument) when a fill gives more or fewer bytes than its shape needs.
  void write(const std::string& path, const std::function<void(uint64_t done, uint64_t total)>& progress = {}) const;
  /// The whole file in memory (small files of the tests).
  std::vector<std::byte> bytes() const;

  void set_pad_end(bool pad) { pad_end_ = pad; }  ///< zero padding at the end (default: yes)

 private:
  struct Key {
    std::string name;
    std::vector<std::byte> typed_value;  // type id and value as in the file
  };
  struct Entry {
    std::string name;
    DType dtype;
    std::vector<int64_t> ne;
    uint64_t size_bytes;
    Fill fill;
  };
  using Sink = std::function<void(std::span<const std::byte>)>;
  std::vector<std::byte> header() const;
  uint64_t padded(uint64_t size_bytes) const;
  uint64_t total_bytes(uint64_t header_bytes) const;
  void emit(const std::vector<std::byte>& head, const Sink& sink) const;
  void put_key(std::string_view key, std::vector<std::byte> typed_value);

  int version_;
  uint64_t alignment_;
  bool pad_end_ = true;
  std::vector<Key> keys_;
  std::vector<Entry> tensors_;
};

}  // namespace kz::gguf
