#include "text/string_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.h"

namespace kz::text {

uint64_t hash_bytes(std::string_view bytes) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15u;
  uint64_t hash = bytes.size() * kOdd;
  const auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * kOdd;
    hash ^= hash >> 32;
  };
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, 8);
    mix(word);
  }
  uint64_t rest = 0;
  if (i < bytes.size()) std::memcpy(&rest, bytes.data() + i, bytes.size() - i);
  mix(rest);
  return hash;
}

void StringTable::reserve(size_t n_strings, size_t n_bytes) {
  blob_.reserve(n_bytes);
  ends_.reserve(n_strings + 1);
  const size_t n_slots = std::bit_ceil(n_strings + n_strings / 2 + 1);
  if (n_slots > slots_.size()) rebuild(n_slots);
}

size_t StringTable::slot_of(std::string_view string) const {
  size_t slot = hash_bytes(string) & (slots_.size() - 1);
  while (slots_[slot] >= 0 && (*this)[slots_[slot]] != string) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void StringTable::rebuild(size_t n_slots) {
  const std::vector<int32_t> old = std::move(slots_);
  slots_.assign(n_slots, -1);
  for (const int32_t number : old) {
    if (number >= 0) slots_[slot_of((*this)[number])] = number;
  }
}

int32_t StringTable::add(std::string_view string) {
  KZ_CHECK(blob_.size() + string.size() <= UINT32_MAX && ends_.size() <= INT32_MAX);
  blob_ += string;
  ends_.push_back(static_cast<uint32_t>(blob_.size()));
  const int32_t number = size() - 1;
  if (string.empty()) return number;
  if (3 * (used_ + 1) > 2 * slots_.size()) rebuild(std::max<size_t>(8, 2 * slots_.size()));
  const std::string_view kept = (*this)[number];
  const size_t slot = slot_of(kept);
  if (slots_[slot] < 0) {
    slots_[slot] = number;
    ++used_;
  }
  return number;
}

int32_t StringTable::find(std::string_view string) const {
  return slots_.empty() || string.empty() ? -1 : slots_[slot_of(string)];
}

int32_t StringTable::intern(std::string_view string) {
  const int32_t number = find(string);
  return number >= 0 ? number : add(string);
}

int64_t StringTable::size_bytes() const {
  return static_cast<int64_t>(blob_.capacity() + ends_.capacity() * sizeof(ends_[0]) +
                              slots_.capacity() * sizeof(slots_[0]));
}

}  // namespace kz::text
