#include "text/token_table.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "text/byte_symbols.h"
#include "text/shown.h"
#include "text/spm.h"

namespace kz::text {
namespace {

[[noreturn]] void refuse(const VocabularyData& data, std::string_view field, const std::string& what) {
  throw Error(ErrorCode::bad_file, fmt::format("{}: tokenizer.ggml.{}: {}", data.source, field, what));
}

void check_length(const VocabularyData& data, std::string_view field, size_t length) {
  if (length == 0 || length >= data.tokens.size()) return;
  refuse(data, field,
         fmt::format("the array is shorter than the vocabulary: {} entries for {} tokens", length, data.tokens.size()));
}

TokenType checked_type(const VocabularyData& data, size_t id) {
  if (data.types.empty()) return TokenType::normal;
  const int32_t type = data.types[id];
  if (type == 0) return TokenType::normal;  // "undefined": some writers never set it
  if (type < 0 || type > static_cast<int32_t>(TokenType::byte)) {
    refuse(data, "token_type", fmt::format("token {} has type {}, expected 1 to 6", id, type));
  }
  return static_cast<TokenType>(type);
}

/// Appends what an ordinary token adds to a text.
void append_piece(std::string_view text, Spelling spelling, std::string& scratch, std::string& out) {
  if (spelling == Spelling::byte_symbols) {
    // A text with other characters than byte symbols stands for itself.
    out += unspell(text, scratch) ? std::string_view(scratch) : text;
    return;
  }
  for (size_t pos = 0; pos < text.size();) {
    if (text.substr(pos).starts_with(kSpaceMark)) {
      out += ' ';
      pos += kSpaceMark.size();
    } else {
      out += text[pos++];
    }
  }
}

}  // namespace

TokenTable::TokenTable(const VocabularyData& data, Spelling spelling) {
  constexpr size_t kMostTokens = size_t{1} << 26;
  const size_t n = data.tokens.size();
  if (n == 0 || n > kMostTokens) refuse(data, "tokens", fmt::format("{} tokens, expected 1 to {}", n, kMostTokens));
  check_length(data, "token_type", data.types.size());
  check_length(data, "scores", data.scores.size());
  size_t n_bytes = 0;
  for (const std::string_view token : data.tokens) n_bytes += token.size();
  if (n_bytes > UINT32_MAX) {
    refuse(data, "tokens", fmt::format("{} bytes of text, expected at most {}", n_bytes, UINT32_MAX));
  }
  texts_.reserve(n, n_bytes);
  types_.reserve(n);
  for (size_t id = 0; id < n; ++id) {
    const int32_t before = texts_.find(data.tokens[id]);
    if (before >= 0) {
      refuse(data, "tokens",
             fmt::format("tokens {} and {} have the same text '{}'", before, id, shown(data.tokens[id])));
    }
    texts_.add(data.tokens[id]);
    types_.push_back(static_cast<uint8_t>(checked_type(data, id)));
    if (!data.scores.empty() && std::isnan(data.scores[id])) {
      refuse(data, "scores", fmt::format("the score of token {} is not a number", id));
    }
  }
  add_pieces(spelling);
}

void TokenTable::add_pieces(Spelling spelling) {
  std::string scratch;
  piece_ends_.reserve(types_.size());
  for (int32_t id = 0; id < size(); ++id) {
    if (type(id) == TokenType::normal) {
      append_piece(texts_[id], spelling, scratch, pieces_);
    } else if (type(id) == TokenType::byte) {
      const int byte = named_byte(texts_[id]);
      if (byte >= 0) {
        pieces_ += static_cast<char>(byte);
      } else {
        pieces_ += texts_[id];
      }
    }
    piece_ends_.push_back(static_cast<uint32_t>(pieces_.size()));
  }
  pieces_.shrink_to_fit();
}

bool TokenTable::is_hidden(int32_t id) const {
  return type(id) == TokenType::control || type(id) == TokenType::unknown || type(id) == TokenType::unused;
}

std::string_view TokenTable::piece(int32_t id, bool show_special) const {
  if (!contains(id)) return {};
  if (is_hidden(id)) return show_special ? texts_[id] : std::string_view();
  if (type(id) == TokenType::user_defined) return texts_[id];
  const auto i = static_cast<size_t>(id);
  const uint32_t begin = i == 0 ? 0 : piece_ends_[i - 1];
  return std::string_view(pieces_).substr(begin, piece_ends_[i] - begin);
}

std::array<int32_t, 256> TokenTable::byte_tokens() const {
  std::array<int32_t, 256> tokens{};
  tokens.fill(-1);
  for (int byte = 0; byte < 256; ++byte) {
    const int32_t id = texts_.find(fmt::format("<0x{:02X}>", byte));
    // Without types every token counts as normal, and such a text is a byte all the same.
    if (id >= 0 && !is_hidden(id)) tokens[static_cast<size_t>(byte)] = id;
  }
  return tokens;
}

int64_t TokenTable::size_bytes() const {
  return texts_.size_bytes() +
         static_cast<int64_t>(types_.capacity() + pieces_.capacity() + piece_ends_.capacity() * sizeof(uint32_t));
}

int named_byte(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const int high = digit(text[3]), low = digit(text[4]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

}  // namespace kz::text
