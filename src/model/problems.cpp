#include "model/problems.h"

#include <fmt/format.h>

#include <algorithm>

#include "gguf/printable.h"

namespace kz {

std::string joined(std::span<const std::string> parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != parts.data()) text += separator;
    text += part;
  }
  return text;
}

void Problems::add(ErrorCode code, std::string text) {
  all_unsupported_ = all_unsupported_ && code == ErrorCode::unsupported;
  texts_.push_back(std::move(text));
}

void Problems::raise(const std::string& file_name) const {
  if (texts_.empty()) return;
  const size_t shown = std::min(texts_.size(), kMaxShown);
  std::string text = gguf::printable_path(file_name) + ": " + joined(std::span(texts_).first(shown), "; ");
  if (texts_.size() > shown) text += fmt::format("; and {} more problems", texts_.size() - shown);
  throw Error(all_unsupported_ ? ErrorCode::unsupported : ErrorCode::bad_file, text);
}

}  // namespace kz
