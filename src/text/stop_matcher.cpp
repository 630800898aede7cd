#include <algorithm>

#include "text/tokenizer.h"
#include "text/unicode.h"

namespace kz {

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  // Texts are valid UTF-8, so a stop string that is not can only be found inside characters and would cut one.
  std::erase_if(stops, [](const std::string& s) { return s.empty() || text::valid_prefix(s) != s.size(); });
  for (std::string& text : stops) {
    Stop stop{std::move(text), {}, 0};
    stop.border.assign(stop.text.size(), 0);
    for (size_t i = 1; i < stop.text.size(); ++i) {
      size_t n = stop.border[i - 1];
      while (n > 0 && stop.text[i] != stop.text[n]) n = stop.border[n - 1];
      stop.border[i] = stop.text[i] == stop.text[n] ? n + 1 : 0;
    }
    stops_.push_back(std::move(stop));
  }
}

/// Lengthens every partial match by one byte. Returns the length of the longest stop string that is complete now, or 0.
size_t StopMatcher::advance(char c) {
  size_t complete = 0;
  for (Stop& stop : stops_) {
    size_t& n = stop.matched;
    while (n > 0 && stop.text[n] != c) n = stop.border[n - 1];
    if (stop.text[n] == c) ++n;
    if (n == stop.text.size()) complete = std::max(complete, n);
  }
  return complete;
}

std::string StopMatcher::push(std::string_view text) {
  if (stopped_) return {};
  for (const char c : text) {
    held_ += c;
    if (const size_t length = advance(c)) {
      stopped_ = true;
      std::string out = held_.substr(0, held_.size() - length);
      held_.clear();
      return out;
    }
  }
  size_t partial = 0;
  for (const Stop& stop : stops_) partial = std::max(partial, stop.matched);
  std::string out = held_.substr(0, held_.size() - partial);
  held_.erase(0, held_.size() - partial);
  return out;
}

std::string StopMatcher::finish() {
  std::string out = std::move(held_);
  held_.clear();
  return out;
}

}  // namespace kz
