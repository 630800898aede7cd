#include "apps/cli/terminal.h"

#include "apps/cli/console.h"
#include "apps/cli/flags.h"

#include <fmt/format.h>
#include <kazeia/error.h>

#include <unistd.h>
#include <algorithm>
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
  write_err(fmt::format("\r{} [{:#<{}}{:-<{}}] {:3} %", label_, "", filled, "", kWidth - filled, percent));
}

void ProgressBar::clear() {
  if (percent_ < 0) return;
  write_err("\r\033[K");
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
  write_err(fmt::format("{}{}{}\n", dim ? "\033[2m" : "", line, dim ? "\033[0m" : ""));
}

}  // namespace kz::cli
