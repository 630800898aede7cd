#include "text/byte_symbols.h"

#include "text/unicode.h"

namespace kz::text {
namespace {

bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr char32_t kFirstOther = 0x100;
constexpr size_t kOthers = 68;

}  // namespace

const std::array<char32_t, 256>& byte_symbols() {
  static const std::array<char32_t, 256> kSymbols = [] {
    std::array<char32_t, 256> symbols{};
    char32_t other = kFirstOther;
    for (unsigned byte = 0; byte < symbols.size(); ++byte) symbols[byte] = stands_for_itself(byte) ? byte : other++;
    return symbols;
  }();
  return kSymbols;
}

int symbol_byte(char32_t symbol) {
  static const std::array<int, kFirstOther + kOthers> kBytes = [] {
    std::array<int, kFirstOther + kOthers> bytes{};
    bytes.fill(-1);
    for (size_t byte = 0; byte < byte_symbols().size(); ++byte) bytes[byte_symbols()[byte]] = static_cast<int>(byte);
    return bytes;
  }();
  return symbol < kBytes.size() ? kBytes[symbol] : -1;
}

std::string spell(std::string_view bytes) {
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char c : bytes) append_utf8(out, byte_symbols()[static_cast<unsigned char>(c)]);
  return out;
}

bool unspell(std::string_view spelling, std::string& bytes) {
  bytes.clear();
  for (size_t pos = 0; pos < spelling.size();) {
    const Utf8Step step = read_utf8(spelling, pos);
    const int byte = step.kind == Utf8::valid ? symbol_byte(step.code_point) : -1;
    if (byte < 0) return false;
    bytes += static_cast<char>(byte);
    pos += step.length;
  }
  return true;
}

}  // namespace kz::text
