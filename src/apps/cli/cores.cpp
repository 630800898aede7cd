#include "apps/cli/cores.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <algorithm>

#include "apps/cli/flags.h"

namespace kz::cli {
namespace {

constexpr int64_t kMostCores = 1024;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::vector<int> parse_core_mask(const std::string& option, const std::string& text) {
  std::string digits = text.starts_with("0x") || text.starts_with("0X") ? text.substr(2) : text;
  std::reverse(digits.begin(), digits.end());
  std::vector<int> cores;
  bool valid = 4 * static_cast<int64_t>(digits.size()) <= kMostCores;
  for (size_t i = 0; valid && i < digits.size(); ++i) {
    const int digit = hex_digit(digits[i]);
    valid = digit >= 0;
    for (int bit = 0; valid && bit < 4; ++bit) {
      if ((digit >> bit & 1) != 0) cores.push_back(static_cast<int>(4 * i) + bit);
    }
  }
  if (!valid || cores.empty()) {
    throw CLI::ValidationError(option, fmt::format("expected a bit per core such as 0xfc, found '{}'", text));
  }
  return cores;
}

std::vector<int> parse_core_range(const std::string& option, const std::string& text) {
  const size_t dash = text.find('-');
  const int64_t first = parse_integer(option, text.substr(0, dash), 0, kMostCores - 1);
  const int64_t last =
      dash == std::string::npos ? first : parse_integer(option, text.substr(dash + 1), first, kMostCores - 1);
  std::vector<int> cores;
  for (int64_t core = first; core <= last; ++core) cores.push_back(static_cast<int>(core));
  return cores;
}

}  // namespace kz::cli
