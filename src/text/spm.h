// SentencePiece's byte-pair encoding: merges by the score of the result.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/merge_heap.h"
#include "text/string_table.h"

namespace kz::text {

/// U+2581, by which these vocabularies write a space.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

/// What the encoder needs to know of a vocabulary; the views must outlive it.
struct SpmVocabulary {
  const StringTable& tokens;
  const std::vector<float>& scores;       ///< one per token
  const std::vector<uint8_t>& mergeable;  ///< one per token: text may become it (no control, unknown or byte tokens)
  std::array<int32_t, 256> byte_tokens;   ///< -1 where there is none
  int32_t unknown = -1;                   ///< stands for characters without tokens; -1: they are left out
};

class SpmEncoder {
 public:
  explicit SpmEncoder(const SpmVocabulary& vocabulary);

  struct Order {
    float score;
    bool operator<(const Order& other) const { return score > other.score; }  // the highest score first
  };
  struct Scratch {
    MergeHeap<Order> heap;
  };

  /// Appends the ids of a text whose spaces are space marks already. Any bytes; what is not UTF-8 becomes byte tokens.
  void encode(std::string_view text, Scratch& scratch, std::vector<int32_t>& ids) const;

 private:
  int32_t find(std::string_view text) const;
  /// A character that is no token: its bytes if all have a token, else one unknown token.
  void encode_bytes(std::string_view symbol, std::vector<int32_t>& ids) const;

  SpmVocabulary vocabulary_;
  size_t longest_ = 0;  // bytes of the longest token
};

}  // namespace kz::text
