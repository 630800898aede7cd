// Cores as the command line names them.
#pragma once

#include <string>
#include <vector>

namespace kz::cli {

/// "0xfc" or "fc": cores 2 to 7, ascending. Throws CLI::ValidationError.
std::vector<int> parse_core_mask(const std::string& option, const std::string& text);
/// "2-7", or "3" for one core. Throws CLI::ValidationError.
std::vector<int> parse_core_range(const std::string& option, const std::string& text);

}  // namespace kz::cli
