#include "text/shown.h"

#include <fmt/format.h>

namespace kz::text {

std::string shown(std::string_view bytes) {
  constexpr size_t kMost = 48;
  std::string out;
  for (const char c : bytes) {
    if (out.size() >= kMost) return out + "...";
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace kz::text
