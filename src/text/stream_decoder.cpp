#include "text/tokenizer.h"
#include "text/unicode.h"

namespace kz {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

std::string StreamDecoder::push(std::string_view bytes) {
  held_ += bytes;
  std::string out;
  size_t pos = 0;
  while (pos < held_.size()) {
    const size_t valid = text::valid_prefix(std::string_view(held_).substr(pos));
    out.append(held_, pos, valid);
    pos += valid;
    if (pos == held_.size()) break;
    const text::Utf8Step step = text::read_utf8(held_, pos);
    if (step.kind == text::Utf8::incomplete) break;
    out += kReplacement;
    pos += step.length;
  }
  held_.erase(0, pos);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out;
  if (!held_.empty()) out = kReplacement;
  held_.clear();
  return out;
}

}  // namespace kz
