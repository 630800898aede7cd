// What only a person at a terminal sees: a progress bar and dimmed statistics. Everything goes to stderr.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace kz::cli {

/// "Loading [#####-----]  50 %", redrawn in place; removed when it ends. Silent when stderr is not a terminal.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void show(double share);  ///< 0..1
  void clear();

 private:
  std::string label_;
  bool enabled_;
  int percent_ = -1;
};

enum class ColorMode { automatic, on, off };
/// "auto" or a word of parse_switch(); throws Error(bad_argument).
ColorMode parse_color(const std::string& word);

/// Writes one statistics line to stderr; dimmed in a terminal (unless NO_COLOR is set) or when colours are on.
void print_note(std::string_view line, ColorMode mode);

}  // namespace kz::cli
