// Text from a vocabulary, made safe for a one-line message.
#pragma once

#include <string>
#include <string_view>

namespace kz::text {

/// Printable ASCII as it is, every other byte as \xNN; cut after about 48 characters.
std::string shown(std::string_view bytes);

}  // namespace kz::text
