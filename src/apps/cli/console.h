// Writing to the terminal or to whatever stands in its place. Results go to stdout and must arrive; everything else
// goes to stderr and is lost without harm when nobody can take it.
#pragma once

#include <string_view>

namespace kz::cli {

/// Writes a result to stdout. Throws Error(io) that names the reason.
void write_out(std::string_view text);
/// Hands over what stdout still holds back. Throws Error(io) when that, or an earlier write, failed.
void flush_out();
/// Writes a note or an error line to stderr, at once; a stderr that is closed or full changes nothing.
void write_err(std::string_view text) noexcept;

}  // namespace kz::cli
