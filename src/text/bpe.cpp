#include "text/bpe.h"

#include <fmt/format.h>

#include <bit>
#include <string>

#include "core/error.h"
#include "text/byte_symbols.h"
#include "text/shown.h"
#include "text/unicode.h"

namespace kz::text {

BytePairEncoder::BytePairEncoder(const StringTable& tokens, std::span<const std::string_view> merges,
                                 std::string_view source)
    : tokens_(tokens) {
  for (size_t byte = 0; byte < byte_symbols_.size(); ++byte) {
    std::string spelling;
    append_utf8(spelling, byte_symbols()[byte]);
    byte_symbols_[byte] = symbol(spelling);
  }
  merges_.reserve(merges.size());
  slots_.assign(std::bit_ceil(merges.size() + merges.size() / 2 + 1), -1);
  for (size_t i = 0; i < merges.size(); ++i) {
    const size_t space = merges[i].find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merges[i].size()) {
      throw Error(ErrorCode::bad_file, fmt::format("{}: tokenizer.ggml.merges: merge {} is '{}', expected two parts "
                                                   "with a space between them",
                                                   source, i, shown(merges[i])));
    }
    add_merge(merges[i]);
  }
}

int32_t BytePairEncoder::symbol(std::string_view spelling) {
  const int32_t id = tokens_.find(spelling);
  return id >= 0 ? id : tokens_.size() + others_.intern(spelling);
}

void BytePairEncoder::add_merge(std::string_view merge) {
  const size_t space = merge.find(' ', 1);
  const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
  const int32_t left_id = symbol(left), right_id = symbol(right);
  const int32_t rank = static_cast<int32_t>(merges_.size());
  int32_t& slot = slots_[slot_of(left_id, right_id)];
  // A pair that comes twice keeps its first rank; the later one still takes a number.
  if (slot >= 0) {
    merges_.push_back({-1, -1, -1});
    return;
  }
  merges_.push_back({left_id, right_id, symbol(std::string(left) + std::string(right))});
  slot = rank;
}

size_t BytePairEncoder::slot_of(int32_t left, int32_t right) const {
  uint64_t hash = (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
  hash *= 0x9E3779B97F4A7C15u;
  hash = (hash ^ (hash >> 32)) * 0xD6E8FEB86659FD93u;
  size_t slot = (hash >> 32) & (slots_.size() - 1);
  while (slots_[slot] >= 0) {
    const Merge& merge = merges_[static_cast<size_t>(slots_[slot])];
    if (merge.left == left && merge.right == right) break;
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

int32_t BytePairEncoder::rank_of(int32_t left, int32_t right) const { return slots_[slot_of(left, right)]; }

void BytePairEncoder::encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const {
  MergeHeap<int32_t>& heap = scratch.heap;
  heap.clear();
  for (uint32_t i = 0; i < word.size(); ++i) heap.add(byte_symbols_[static_cast<unsigned char>(word[i])], i, i + 1);
  using Symbol = MergeHeap<int32_t>::Symbol;
  heap.merge([&](const Symbol& left, const Symbol& right, Proposal<int32_t>& proposal) {
    proposal.order = rank_of(left.id, right.id);
    if (proposal.order < 0) return false;
    proposal.merged_id = merges_[static_cast<size_t>(proposal.order)].merged;
    return true;
  });
  heap.each([&](const Symbol& s) { emit(s.id, word.substr(s.begin, s.end - s.begin), ids); });
}

void BytePairEncoder::emit(int32_t symbol, std::string_view bytes, std::vector<int32_t>& ids) const {
  if (symbol < tokens_.size()) {
    ids.push_back(symbol);
    return;
  }
  for (const char c : bytes) {
    const int32_t id = byte_token(static_cast<unsigned char>(c));
    if (id >= 0) ids.push_back(id);
  }
}

int32_t BytePairEncoder::byte_token(unsigned char byte) const {
  const int32_t id = byte_symbols_[byte];
  return id < tokens_.size() ? id : -1;
}

int64_t BytePairEncoder::size_bytes() const {
  return others_.size_bytes() + static_cast<int64_t>(merges_.capacity() * sizeof(Merge) +
                                                     slots_.capacity() * sizeof(slots_[0]) + sizeof(byte_symbols_));
}

}  // namespace kz::text
