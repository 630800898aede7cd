// The values of an option that takes several: "16,512" or "0,1024-4096+1024".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kz::cli {

/// Whole numbers, separated by commas; "first-last", "first-last+step" and "first-last*factor" are ranges. All the
/// words of a repeated option, in order. Throws Error(bad_argument) that names the option, the word and what is wrong.
std::vector<int64_t> parse_numbers(const std::string& option, const std::vector<std::string>& words, int64_t lowest,
                                   int64_t highest);

/// Names, separated by commas. Throws Error(bad_argument) for an empty one.
std::vector<std::string> parse_names(const std::string& option, const std::vector<std::string>& words);

}  // namespace kz::cli
