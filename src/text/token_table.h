// The tokens of a vocabulary: how they are spelled, what they add to a text, of what type they are.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/string_table.h"
#include "text/tokenizer.h"

namespace kz::text {

/// How the ordinary tokens of a vocabulary are spelled.
enum class Spelling {
  byte_symbols,  ///< every byte is one of 256 characters (byte_symbols.h)
  space_marks,   ///< U+2581 is a space, <0xXX> a byte
};

class TokenTable {
 public:
  /// Throws Error(bad_file) when arrays are shorter than the vocabulary, a type is unknown, a score is not a number or
  /// two tokens have the same text. Texts may be empty: such tokens are never found.
  TokenTable(const VocabularyData& data, Spelling spelling);

  const StringTable& texts() const { return texts_; }
  int32_t size() const { return texts_.size(); }
  bool contains(int32_t id) const { return id >= 0 && id < size(); }
  TokenType type(int32_t id) const { return static_cast<TokenType>(types_[static_cast<size_t>(id)]); }
  /// Control, unknown and unused tokens: no text of an answer.
  bool is_hidden(int32_t id) const;
  /// The bytes that a token adds to a text.
  std::string_view piece(int32_t id, bool show_special) const;
  /// The token of each byte in a vocabulary with space marks, or -1.
  std::array<int32_t, 256> byte_tokens() const;

  int64_t size_bytes() const;

 private:
  void add_pieces(Spelling spelling);

  StringTable texts_;
  std::vector<uint8_t> types_;
  // Bytes of the ordinary tokens, one after the other; tokens of other types are their text.
  std::string pieces_;
  std::vector<uint32_t> piece_ends_;
};

/// The byte that a text like <0x0A> names, or -1.
int named_byte(std::string_view text);

}  // namespace kz::text
