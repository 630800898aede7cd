#include "apps/cli/arguments.h"

#include <fmt/format.h>
#include <kazeia/error.h>

#include <algorithm>
#include <array>

namespace kz::cli {
namespace {

constexpr std::array<ShortSpelling, 8> kSpellings = {{
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-ub", "--ubatch-size"},
    {"-sys", "--system-prompt"},
    {"-rea", "--reasoning"},
    {"-no-cnv", "--raw"},
    {"-co", "--color"},
    {"-Cr", "--cpu-range"},
}};

constexpr std::array<IgnoredFlag, 7> kIgnored = {{
    {"-ngl", "--n-gpu-layers", IgnoredFlag::one, "all layers run on the processor"},
    {"-ngl", "--gpu-layers", IgnoredFlag::one, "all layers run on the processor"},
    {"-fa", "--flash-attn", IgnoredFlag::word, "there is one form of attention, which keeps no matrix of scores"},
    {"-tb", "--threads-batch", IgnoredFlag::one, "prompts are read with the threads of -t"},
    {"-ub", "--ubatch-size", IgnoredFlag::one, "-b is the most tokens of one pass"},
    {"-st", "--single-turn", IgnoredFlag::none, "one prompt is answered anyway"},
    {"-cnv", "--conversation", IgnoredFlag::none, "prompts are chat messages anyway, one per call"},
}};

/// What stands behind `name` in "name=...": true also for the name alone.
bool is_form_of(std::string_view word, std::string_view name) {
  return word == name || (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=');
}

/// The long form of one word, or the word itself.
std::string translate(const std::string& word) {
  for (const ShortSpelling& spelling : kSpellings) {
    if (is_form_of(word, spelling.typed)) return std::string(spelling.long_name) + word.substr(spelling.typed.size());
  }
  return word;
}

const IgnoredFlag* find_ignored(std::string_view word) {
  const auto* at = std::find_if(kIgnored.begin(), kIgnored.end(), [&](const IgnoredFlag& flag) {
    return is_form_of(word, flag.short_name) || is_form_of(word, flag.long_name);
  });
  return at != kIgnored.end() ? at : nullptr;
}

/// Whether the word behind a flag without effect is its value.
bool takes_next(const IgnoredFlag& flag, std::string_view word, std::string_view next) {
  if (word.find('=') != std::string_view::npos || flag.value == IgnoredFlag::none) return false;
  constexpr std::array<std::string_view, 5> kWords = {"on", "off", "auto", "0", "1"};
  return flag.value == IgnoredFlag::one || std::find(kWords.begin(), kWords.end(), next) != kWords.end();
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// A value may follow a short flag without a blank (-n5, -m/models/x.gguf), but not where it looks like a longer name.
void check_short(std::string_view word) {
  if (word.size() < 3 || !is_letter(word[1]) || !is_letter(word[2])) return;
  throw Error(
      ErrorCode::bad_argument,
      fmt::format("unknown flag {} (if it is {} and a value, put a blank between them)", word, word.substr(0, 2)));
}

}  // namespace

std::span<const ShortSpelling> short_spellings() { return kSpellings; }
std::span<const IgnoredFlag> ignored_flags() { return kIgnored; }

std::vector<std::string> translate_arguments(std::span<const std::string> args, const TakesValue& takes_value,
                                             std::vector<std::string>& notes) {
  std::vector<std::string> out;
  out.reserve(args.size());
  std::string command;
  bool only_positionals = false;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (only_positionals || !arg.starts_with('-')) {
      if (!only_positionals && command.empty()) command = arg;
      out.push_back(arg);
      continue;
    }
    const IgnoredFlag* ignored = find_ignored(arg);
    if (ignored != nullptr && !takes_value(command, std::string(ignored->long_name))) {
      notes.push_back(fmt::format("{} has no effect: {}", arg.substr(0, arg.find('=')), ignored->reason));
      if (i + 1 < args.size() && takes_next(*ignored, arg, args[i + 1])) ++i;
      continue;
    }
    out.push_back(translate(arg));
    if (arg == "--") only_positionals = true;
    if (!arg.starts_with("--") && out.back() == arg) check_short(arg);
    if (takes_value(command, out.back()) && i + 1 < args.size()) out.push_back(args[++i]);
  }
  return out;
}

}  // namespace kz::cli
