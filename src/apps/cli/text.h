// Bytes and words of the command line tool: reading texts, escapes, what may be shown on a terminal, tables.
#pragma once

#include <kazeia/engine.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kz::cli {

/// More than any text that fits a context: what is longer is no text but a mistake (a device, a model).
constexpr uint64_t kMaxTextBytes = uint64_t{256} << 20;

/// All bytes of a file ("-": standard input), unchanged. Throws Error(io) that names the path and the reason, and
/// Error(bad_argument) above max_bytes, before they are read where the system knows the size.
std::string read_bytes(const std::string& path, uint64_t max_bytes = kMaxTextBytes);

/// Resolves \n \r \t \' \" \\ and \xHH; any other backslash stays as it is.
std::string resolve_escapes(std::string_view text);

/// Text that is safe to show: valid UTF-8 stays, control characters become \n, \t or \xHH, as do broken bytes.
std::string printable(std::string_view bytes);
/// printable(), with line ends as blanks: for error messages.
std::string one_line(std::string_view text);

/// "512 B", "4.8 MiB", "1.2 GiB".
std::string size_text(int64_t size_bytes);

/// Lines of left-aligned columns, two blanks apart, no trailing blanks; columns whose index is in `right` align right.
std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<size_t>& right = {});

/// One line of JSON to stdout; bytes that are not UTF-8 become U+FFFD.
void print_json(const nlohmann::json& value);
/// [{"what", "size_bytes", "file_bytes"}, ...]
nlohmann::json memory_json(const std::vector<MemoryItem>& items);
/// "12.0 MiB: weights 4.8 MiB (4.8 MiB from the file), KV 1.0 MiB, ..."
std::string memory_line(const std::vector<MemoryItem>& items);
/// One row per item and a total.
std::string memory_table(const std::vector<MemoryItem>& items);

}  // namespace kz::cli
