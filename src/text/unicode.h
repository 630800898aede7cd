// UTF-8, character classes and NFC: what the pre-tokenizers and the normaliser need of Unicode.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kz::text {

/// What the bytes at a place are.
enum class Utf8 {
  valid,       ///< one character
  invalid,     ///< bytes that no continuation can make valid
  incomplete,  ///< the end of the text cuts a sequence that is valid so far
};

struct Utf8Step {
  Utf8 kind;
  uint32_t length;      ///< bytes of the character, or of the longest broken sequence (Unicode's maximal subpart)
  char32_t code_point;  ///< 0 unless valid
};

/// Reads at text[pos]; pos < text.size(). Overlong forms, surrogates and values above U+10FFFF are invalid.
Utf8Step read_utf8(std::string_view text, size_t pos);

/// A character at text[pos] of a text that is known to be valid.
Utf8Step read_valid_utf8(std::string_view text, size_t pos);

/// Length of the longest valid prefix, in bytes.
size_t valid_prefix(std::string_view text);

void append_utf8(std::string& out, char32_t code_point);

// Classes of a character; a character has one of the first four or none.
inline constexpr uint8_t kLetter = 1;        ///< \p{L}
inline constexpr uint8_t kMark = 2;          ///< \p{M}
inline constexpr uint8_t kNumber = 4;        ///< \p{N}
inline constexpr uint8_t kSpace = 8;         ///< White_Space
inline constexpr uint8_t kNewline = 16;      ///< CR or LF (kSpace too)
inline constexpr uint8_t kPunctuation = 32;  ///< \p{P}

/// The classes of a character as a sum of the bits above. Unassigned characters have none.
uint8_t char_class(char32_t code_point);

/// Unicode's normalisation form C of a valid text; linear in its length. Source: UAX #15.
std::string nfc(std::string_view text);
/// True when nfc() would change nothing, told from the bytes alone (false may still mean unchanged).
bool surely_nfc(std::string_view text);

}  // namespace kz::text
