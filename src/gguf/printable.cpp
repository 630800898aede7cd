#include "gguf/printable.h"

#include <cstdint>

namespace kz::gguf {
namespace {

void append_hex(std::string& out, unsigned char byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += "\\x";
  out += kDigits[byte >> 4];
  out += kDigits[byte & 15];
}

/// Length of the well-formed sequence at the start of the bytes, or 0.
size_t utf8_length(std::string_view bytes) noexcept {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (bytes.size() < length) return 0;
  // The second byte carries the limits: E0 and F0 exclude overlong forms, ED surrogates, F4 what is above U+10FFFF.
  const unsigned char lowest = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned char highest = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (at(1) < lowest || at(1) > highest) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (at(i) < 0x80 || at(i) > 0xbf) return 0;
  }
  return length;
}

}  // namespace

std::string printable(std::string_view bytes, size_t max_chars) {
  std::string out;
  for (const char c : bytes) {
    if (out.size() >= max_chars) return out + "...";
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7e) {
      append_hex(out, byte);
    } else {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

std::string printable_path(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      append_hex(out, byte);
    } else {
      out += c;
    }
  }
  return out;
}

bool is_utf8(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const size_t length = utf8_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

}  // namespace kz::gguf
