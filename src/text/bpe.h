// Byte-level byte-pair encoding: merges by rank.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/merge_heap.h"
#include "text/string_table.h"

namespace kz::text {

/// The merge table of a vocabulary. Immutable after construction; refers to the token table it was made from.
class BytePairEncoder {
 public:
  /// `tokens` are spelled in byte symbols (byte_symbols.h) and must outlive this. `merges` are "left right", best
  /// first; the space is the first one after byte 0. Throws Error(bad_file) for a merge without two parts.
  BytePairEncoder(const StringTable& tokens, std::span<const std::string_view> merges, std::string_view source);

  /// Memory of a caller, kept from word to word.
  struct Scratch {
    MergeHeap<int32_t> heap;
  };

  /// Appends the ids of a word given as plain bytes. A symbol that is no token is written byte by byte; a byte without
  /// a token of its own is left out.
  void encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;

  /// The token of a single byte, or -1.
  int32_t byte_token(unsigned char byte) const;

  int64_t size_bytes() const;

 private:
  // Symbols are numbered like the tokens; strings that only merges mention follow behind them.
  struct Merge {
    int32_t left, right, merged;  // its place in merges_ is its rank
  };
  int32_t symbol(std::string_view spelling);
  void add_merge(std::string_view merge);
  size_t slot_of(int32_t left, int32_t right) const;
  int32_t rank_of(int32_t left, int32_t right) const;  // or -1
  void emit(int32_t symbol, std::string_view bytes, std::vector<int32_t>& ids) const;

  const StringTable& tokens_;
  StringTable others_;
  std::array<int32_t, 256> byte_symbols_{};
  std::vector<Merge> merges_;
  std::vector<int32_t> slots_;  // rank, or -1; a power of two of them
};

}  // namespace kz::text
