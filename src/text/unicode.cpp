#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.h"

namespace kz::text {
namespace {

// Characters below U+0300 neither have a combining class nor compose with what stands before them; their lead bytes
// are below this one.
constexpr unsigned char kFirstCombiningLead = 0xCC;

unsigned char byte_at(std::string_view text, size_t pos) { return static_cast<unsigned char>(text[pos]); }

bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

struct Lead {
  uint32_t length;                // of the whole sequence, 0 when the byte cannot begin one
  unsigned char lowest, highest;  // allowed second byte: this is where overlong forms and surrogates are refused
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

char32_t assemble(std::string_view text, size_t pos, uint32_t length) {
  static constexpr std::array<unsigned char, 5> kLeadBits{0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t code_point = byte_at(text, pos) & kLeadBits[length];
  for (uint32_t i = 1; i < length; ++i) code_point = (code_point << 6) | (byte_at(text, pos + i) & 0x3Fu);
  return code_point;
}

uint8_t look_up_class(char32_t code_point) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kLetter;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kMark;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return kPunctuation;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return kSpace;
    default:
      break;
  }
  // The control characters of White_Space have no Z category.
  if (code_point == '\r' || code_point == '\n') return kSpace | kNewline;
  if ((code_point >= 0x09 && code_point <= 0x0D) || code_point == 0x85) return kSpace;
  return 0;
}

std::array<uint8_t, 128> ascii_classes() {
  std::array<uint8_t, 128> classes{};
  for (char32_t c = 0; c < classes.size(); ++c) classes[c] = look_up_class(c);
  return classes;
}

/// Appends the canonical decomposition of a character.
void decompose(char32_t code_point, std::vector<utf8proc_int32_t>& out) {
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  std::array<utf8proc_int32_t, 32> parts{};
  int boundary = 0;
  const utf8proc_ssize_t n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), parts.data(),
                                                     static_cast<utf8proc_ssize_t>(parts.size()), kOptions, &boundary);
  KZ_CHECK(n >= 0 && static_cast<size_t>(n) <= parts.size());
  out.insert(out.end(), parts.begin(), parts.begin() + n);
}

/// Canonical ordering: marks between two starters by their combining class, equal ones in their order. utf8proc's own
/// loop is quadratic in the number of marks.
void order_marks(std::vector<utf8proc_int32_t>& text) {
  constexpr int kCharBits = 21;  // of a key: class, place, character
  const auto combining_class = [](utf8proc_int32_t c) {
    return static_cast<uint64_t>(utf8proc_get_property(c)->combining_class);
  };
  std::vector<uint64_t> keys;
  for (size_t first = 0; first < text.size();) {
    keys.clear();
    for (size_t i = first; i < text.size(); ++i) {
      const uint64_t order = combining_class(text[i]);
      if (order == 0) break;
      keys.push_back((order << 56) | (uint64_t{i - first} << kCharBits) | static_cast<uint64_t>(text[i]));
    }
    if (!std::is_sorted(keys.begin(), keys.end())) std::sort(keys.begin(), keys.end());
    for (size_t i = 0; i < keys.size(); ++i) {
      text[first + i] = static_cast<utf8proc_int32_t>(keys[i] & ((uint64_t{1} << kCharBits) - 1));
    }
    first += keys.size() + 1;
  }
}

void append_nfc(std::string_view part, std::vector<utf8proc_int32_t>& buffer, std::string& out) {
  buffer.clear();
  for (size_t pos = 0; pos < part.size();) {
    const Utf8Step step = read_valid_utf8(part, pos);
    decompose(step.code_point, buffer);
    pos += step.length;
  }
  order_marks(buffer);
  const utf8proc_ssize_t n =
      utf8proc_normalize_utf32(buffer.data(), static_cast<utf8proc_ssize_t>(buffer.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  KZ_CHECK(n >= 0);
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) append_utf8(out, static_cast<char32_t>(buffer[i]));
}

}  // namespace

Utf8Step read_utf8(std::string_view text, size_t pos) {
  const Lead lead = lead_of(byte_at(text, pos));
  if (lead.length == 0) return {Utf8::invalid, 1, 0};
  const size_t present = std::min<size_t>(lead.length, text.size() - pos);
  for (uint32_t i = 1; i < present; ++i) {
    const unsigned char next = byte_at(text, pos + i);
    const bool fits = i == 1 ? next >= lead.lowest && next <= lead.highest : is_continuation(next);
    if (!fits) return {Utf8::invalid, i, 0};
  }
  if (present < lead.length) return {Utf8::incomplete, static_cast<uint32_t>(present), 0};
  return {Utf8::valid, lead.length, assemble(text, pos, lead.length)};
}

Utf8Step read_valid_utf8(std::string_view text, size_t pos) {
  const unsigned char byte = byte_at(text, pos);
  if (byte < 0x80) return {Utf8::valid, 1, byte};
  const uint32_t length = byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
  return {Utf8::valid, length, assemble(text, pos, length)};
}

size_t valid_prefix(std::string_view text) {
  size_t pos = 0;
  while (pos < text.size()) {
    if (byte_at(text, pos) < 0x80) {
      ++pos;
      continue;
    }
    const Utf8Step step = read_utf8(text, pos);
    if (step.kind != Utf8::valid) break;
    pos += step.length;
  }
  return pos;
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

uint8_t char_class(char32_t code_point) {
  static const std::array<uint8_t, 128> kAscii = ascii_classes();
  return code_point < kAscii.size() ? kAscii[code_point] : look_up_class(code_point);
}

bool surely_nfc(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) >= kFirstCombiningLead; });
}

std::string nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::vector<utf8proc_int32_t> buffer;
  const auto combining = [&](size_t pos) { return byte_at(text, pos) >= kFirstCombiningLead; };
  size_t pos = 0;
  while (pos < text.size()) {
    // Everything up to the last character before the next one that may combine stays as it is.
    size_t first = pos, before = pos;
    while (first < text.size() && !combining(first)) {
      before = first;
      first += read_valid_utf8(text, first).length;
    }
    if (first == text.size()) before = first;
    out += text.substr(pos, before - pos);
    size_t last = first;
    while (last < text.size() && combining(last)) last += read_valid_utf8(text, last).length;
    if (last > before) append_nfc(text.substr(before, last - before), buffer, out);
    pos = last;
  }
  return out;
}

}  // namespace kz::text
