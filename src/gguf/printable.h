// Text of unknown origin made safe for a one-line message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kz::gguf {

/// Bytes that a file holds: printable ASCII as it is, every other byte as \xNN, a quote or backslash with a backslash
/// before it; behind max_chars characters it ends with "...".
std::string printable(std::string_view bytes, size_t max_chars = 64);

/// A path as the user gave it: the same bytes (it may be in any encoding), only control characters as \xNN.
std::string printable_path(std::string_view path);

/// Whether the bytes are well-formed UTF-8 (no surrogates, no overlong forms, nothing above U+10FFFF).
bool is_utf8(std::string_view bytes) noexcept;

}  // namespace kz::gguf
