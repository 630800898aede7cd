// Strings numbered 0, 1, 2, ... in one block of memory, with a hash index: 250 000 tokens cost their bytes plus about
// twelve bytes each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kz::text {

/// A short hash for strings of a file. (A file made to collide only slows its own loading down.)
uint64_t hash_bytes(std::string_view bytes);

class StringTable {
 public:
  /// Makes room for so many strings of so many bytes together.
  void reserve(size_t n_strings, size_t n_bytes);
  /// Appends a string and returns its number. Strings that are equal get numbers of their own; find() knows the first.
  /// The empty string is kept but never found.
  int32_t add(std::string_view string);
  /// The number of a string, or -1.
  int32_t find(std::string_view string) const;
  /// find(), or add() when there is none.
  int32_t intern(std::string_view string);

  std::string_view operator[](int32_t number) const {
    const auto i = static_cast<size_t>(number);
    return std::string_view(blob_).substr(ends_[i], ends_[i + 1] - ends_[i]);
  }
  int32_t size() const { return static_cast<int32_t>(ends_.size()) - 1; }
  int64_t size_bytes() const;

 private:
  size_t slot_of(std::string_view string) const;
  void rebuild(size_t n_slots);

  std::string blob_;
  std::vector<uint32_t> ends_{0};
  std::vector<int32_t> slots_;  // number, or -1; a power of two of them, at most two thirds full
  size_t used_ = 0;
};

}  // namespace kz::text
