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

/// A flag of other engines that changes nothing here and is accepted with a note.
struct IgnoredFlag {
  std::string_view short_name, long_name;
  enum Value { none, one, word } value;  ///< word: on, off, auto, 0 or 1, or nothing
  std::string_view reason;
};
std::span<const IgnoredFlag> ignored_flags();

/// Whether `option` ("-p", "--prompt") of the subcommand `command` (empty: none yet) takes a value as its next word.
using TakesValue = std::function<bool(const std::string& command, const std::string& option)>;

/// Rewrites "-ctk q8_0" and "-ctk=q8_0" to the long form. A word that is the value of the option before it, and
/// everything behind a lone "--", stays as it is: `-p -sys` asks about "-sys". Flags without effect are left out, and
/// `notes` gets a line for each. Throws Error(bad_argument) for several letters behind one dash that mean nothing here:
/// read as a short flag with its value, "-hf" would open the file "f".
std::vector<std::string> translate_arguments(std::span<const std::string> args, const TakesValue& takes_value,
                                             std::vector<std::string>& notes);

}  // namespace kz::cli
