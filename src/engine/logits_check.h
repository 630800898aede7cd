// The cheapest sign that a forward pass went wrong.
#pragma once

#include <span>
#include <string_view>

namespace kz {

/// Throws Error(bad_file) that names the file and the position when a row of logits holds a NaN or an infinity, or
/// when all its entries are equal: such a row has nothing to choose from, and sampling it gives endless junk.
void check_logits(std::span<const float> logits, std::string_view file, long long position);

}  // namespace kz
