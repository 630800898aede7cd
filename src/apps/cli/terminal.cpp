#include "apps/cli/terminal.h"

#include "apps/cli/flags.h"

#include <fmt/format.h>
#include <kazeia/error.h>

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace kz::cli {

ProgressBar::ProgressBar(std::string label) : label_(std::move(label)), enabled_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::show(double share) {
  constexpr int kWidth = 40;
  const int percent = static_cast<int>(std::clamp(share, 0.0, 1.0) * 100);
  if (!enabled_ || percent == percent_) return;
  percent_ = percent;
  const int filled = percent * kWidth / 100;
  std::fprintf(stderr, "\r%s [%s%s] %3d %%", label_.c_str(), std::string(static_cast<size_t>(filled), '#').c_str(),
               std::string(static_cast<size_t>(kWidth - filled), '-').c_str(), percent);
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (percent_ < 0) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  percent_ = -1;
}

ColorMode parse_color(const std::string& word) {
  if (word == "auto") return ColorMode::automatic;
  try {
    return parse_switch(word) ? ColorMode::on : ColorMode::off;
  } catch (const CLI::ValidationError&) {
    throw Error(ErrorCode::bad_argument, fmt::format("--color: expected on, off or auto, found '{}'", word));
  }
}

void print_note(std::string_view line, ColorMode mode) {
  const bool dim = mode == ColorMode::on ||
                   (mode == ColorMode::automatic && isatty(STDERR_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr);
  fmt::print(stderr, "{}{}{}\n", dim ? "\033[2m" : "", line, dim ? "\033[0m" : "");
}

}  // namespace kz::cli
