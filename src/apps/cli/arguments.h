// Spellings that users of other engines have in their fingers and CLI11 cannot read: several letters behind one
// dash (-ctk, -sys, -rea, -no-cnv). They are rewritten to the long form before parsing.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kz::cli {

struct ShortSpelling {
  std::string_view typed;      ///< "-ctk"
  std::string_view long_name;  ///< "--cache-type-k"
};
std::span<const ShortSpelling> short_spellings();

/// Whether `option` ("-p", "--prompt") of the subcommand `command` (empty: none yet) takes a value as its next word.
using TakesValue = std::function<bool(const std::string& command, const std::string& option)>;

/// Rewrites "-ctk q8_0" and "-ctk=q8_0" to the long form. A word that is the value of the option before it, and
/// everything behind a lone "--", stays as it is: `-p -sys` asks about "-sys".
std::vector<std::string> translate_arguments(std::span<const std::string> args, const TakesValue& takes_value);

}  // namespace kz::cli
