#include "apps/cli/arguments.h"

#include <array>

namespace kz::cli {
namespace {

constexpr std::array<ShortSpelling, 7> kSpellings = {{
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-sys", "--system-prompt"},
    {"-rea", "--reasoning"},
    {"-no-cnv", "--raw"},
    {"-co", "--color"},
    {"-Cr", "--cpu-range"},
}};

/// The long form of one word, or the word itself.
std::string translate(const std::string& word) {
  for (const ShortSpelling& spelling : kSpellings) {
    if (word == spelling.typed) return std::string(spelling.long_name);
    if (word.size() > spelling.typed.size() && word.starts_with(spelling.typed) && word[spelling.typed.size()] == '=') {
      return std::string(spelling.long_name) + word.substr(spelling.typed.size());
    }
  }
  return word;
}

}  // namespace

std::span<const ShortSpelling> short_spellings() { return kSpellings; }

std::vector<std::string> translate_arguments(std::span<const std::string> args, const TakesValue& takes_value) {
  std::vector<std::string> out;
  out.reserve(args.size());
  std::string command;
  bool is_value = false;
  bool only_positionals = false;
  for (const std::string& arg : args) {
    if (is_value || only_positionals) {
      out.push_back(arg);
      is_value = false;
      continue;
    }
    if (arg == "--") {
      only_positionals = true;
      out.push_back(arg);
      continue;
    }
    if (!arg.starts_with('-')) {
      if (command.empty()) command = arg;
      out.push_back(arg);
      continue;
    }
    out.push_back(translate(arg));
    is_value = takes_value(command, out.back());
  }
  return out;
}

}  // namespace kz::cli
