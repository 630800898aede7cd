#include "gguf/split.h"

#include <fmt/format.h>

namespace kz::gguf {
namespace {

/// The value of exactly five digits, or -1.
int five_digits(std::string_view digits) {
  int value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

std::optional<ShardName> parse_shard_name(std::string_view path) {
  constexpr std::string_view kShape = "-00000-of-00000.gguf";
  if (path.size() <= kShape.size()) return std::nullopt;
  const std::string_view prefix = path.substr(0, path.size() - kShape.size());
  const std::string_view suffix = path.substr(prefix.size());
  if (prefix.back() == '/') return std::nullopt;
  if (suffix[0] != '-' || suffix.substr(6, 4) != "-of-" || suffix.substr(15) != ".gguf") return std::nullopt;
  const int number = five_digits(suffix.substr(1, 5));
  const int count = five_digits(suffix.substr(10, 5));
  if (number < 1 || number > count) return std::nullopt;
  return ShardName{std::string(prefix), number, count};
}

std::string shard_path(const ShardName& name, int number) {
  return fmt::format("{}-{:05d}-of-{:05d}.gguf", name.prefix, number, name.count);
}

}  // namespace kz::gguf
