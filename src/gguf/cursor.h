// Reads a file front to back and never beyond its end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <kazeia/error.h>

namespace kz::gguf {

static_assert(std::endian::native == std::endian::little, "GGUF fields are copied as they lie in the file");

/// The part of the file that is being read; it stands in messages.
struct Place {
  const char* kind = "header";  ///< "header", "key" or "tensor"
  uint64_t index = 0;           ///< of the key or tensor, from 0
  std::string_view name;        ///< once known
};

/// "header", "key 3", "key 3 'general.name'".
std::string describe(const Place& place);

/// Throws Error(code, "FILE: text").
[[noreturn]] void fail(ErrorCode code, const std::string& file, const std::string& text);

/// A bounds-checked reader. Every failure throws Error(bad_file) that says which field of which key or tensor
/// the file ends in, how many bytes are left and how many are needed.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  Place place;

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }
  const std::string& file() const { return file_; }

  /// One number as it lies in the file.
  template <class T>
  T read(const char* field) {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    std::memcpy(&value, take(sizeof(T), field).data(), sizeof(T));
    return value;
  }

  /// The next `count` bytes.
  std::span<const std::byte> take(uint64_t count, const char* field) {
    if (count > remaining()) fail_end(count, field);
    const auto taken = bytes_.subspan(position_, count);
    position_ += count;
    return taken;
  }

  /// A text: 64-bit length, then the bytes; at most 1 GiB.
  std::string_view text(const char* field) {
    const auto length = read<uint64_t>(field);
    if (length > kMaxTextBytes || length > remaining()) fail_text(length, field);
    const auto taken = take(length, field);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

  /// Throws "FILE: PLACE: text".
  [[noreturn]] void fail_here(ErrorCode code, const std::string& text) const;

  static constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;

 private:
  [[noreturn]] void fail_end(uint64_t wanted, const char* field) const;
  [[noreturn]] void fail_text(uint64_t length, const char* field) const;

  std::span<const std::byte> bytes_;
  const std::string& file_;
  uint64_t position_ = 0;
};

}  // namespace kz::gguf
