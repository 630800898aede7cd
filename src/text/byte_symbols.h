// The 256 characters by which byte-level vocabularies spell bytes.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace kz::text {

/// The character of every byte: printable Latin-1 stands for itself, the other 68 bytes are U+0100, U+0101, ... in
/// order.
const std::array<char32_t, 256>& byte_symbols();

/// The byte that a character stands for, or -1.
int symbol_byte(char32_t symbol);

/// The spelling of bytes, and its inverse. unspell() returns false when a character stands for no byte (or the
/// spelling is not UTF-8); `bytes` is then undefined.
std::string spell(std::string_view bytes);
bool unspell(std::string_view spelling, std::string& bytes);

}  // namespace kz::text
