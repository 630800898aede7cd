#include "apps/cli/text.h"

#include "apps/cli/console.h"

#include <fmt/format.h>

#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

namespace kz::cli {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Bytes of the UTF-8 sequence at the front of `text`, 0 when it is broken.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool overlong = first == 0xe0 && byte(1) < 0xa0;
    const bool surrogate = first == 0xed && byte(1) > 0x9f;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool overlong = first == 0xf0 && byte(1) < 0x90;
    const bool too_large = first == 0xf4 && byte(1) > 0x8f;
    return follows(1) && follows(2) && follows(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

/// Characters a terminal shows (code points; wide ones count as one).
size_t shown_width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
}

/// C1 control characters (U+0080..U+009F) can steer a terminal, too.
bool is_control(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  return sequence.size() == 2 && first == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;
}

/// How much of an item the kernel may drop and read again from the model file.
std::string file_share(const MemoryItem& item) {
  if (item.file_bytes <= 0) return "";
  if (item.file_bytes == item.size_bytes) return "pages of the file";
  return size_text(item.file_bytes) + " of it pages of the file";
}

struct FileCloser {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

}  // namespace

std::string read_bytes(const std::string& path, uint64_t max_bytes) {
  if (path.empty()) throw Error(ErrorCode::bad_argument, "the name of the file to read is empty");
  const std::unique_ptr<std::FILE, FileCloser> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  const std::string shown = path == "-" ? "standard input" : path;
  if (!file) throw Error(ErrorCode::io, fmt::format("{}: cannot open: {}", shown, std::strerror(errno)));
  const auto check_size = [&](uint64_t size_bytes) {
    if (size_bytes <= max_bytes) return;
    throw Error(ErrorCode::bad_argument,
                fmt::format("{}: has {} or more, expected at most {}", shown,
                            size_text(static_cast<int64_t>(size_bytes)), size_text(static_cast<int64_t>(max_bytes))));
  };
  struct stat facts{};
  if (fstat(fileno(file.get()), &facts) == 0 && S_ISREG(facts.st_mode)) {
    check_size(static_cast<uint64_t>(facts.st_size));
  }
  std::string bytes;
  std::vector<char> chunk(1 << 16);
  while (true) {
    errno = 0;
    const size_t n = std::fread(chunk.data(), 1, chunk.size(), file.get());
    bytes.append(chunk.data(), n);
    check_size(bytes.size());
    if (n < chunk.size()) break;
  }
  if (std::ferror(file.get())) {
    throw Error(ErrorCode::io, fmt::format("{}: cannot read: {}", shown, std::strerror(errno)));
  }
  return bytes;
}

std::string resolve_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    constexpr std::string_view kLetters = "nrt'\"\\";
    constexpr std::string_view kMeanings = "\n\r\t'\"\\";
    if (const size_t at = kLetters.find(next); next != '\0' && at != std::string_view::npos) {
      out += kMeanings[at];
      i += 1;
    } else if (next == 'x' && i + 3 < text.size() && hex_digit(text[i + 2]) >= 0 && hex_digit(text[i + 3]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 2]) * 16 + hex_digit(text[i + 3]));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string printable(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const size_t length = sequence_length(bytes);
    const std::string_view sequence = bytes.substr(0, std::max<size_t>(length, 1));
    if (sequence == "\n") {
      out += "\\n";
    } else if (sequence == "\t") {
      out += "\\t";
    } else if (length == 0 || is_control(sequence)) {
      for (const char c : sequence) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += sequence;
    }
    bytes.remove_prefix(sequence.size());
  }
  return out;
}

std::string one_line(std::string_view text) {
  std::string flat(text);
  while (!flat.empty() && flat.back() == '\n') flat.pop_back();
  std::replace(flat.begin(), flat.end(), '\n', ' ');
  return printable(flat);
}

std::string size_text(int64_t size_bytes) {
  if (size_bytes < 1024) return fmt::format("{} B", size_bytes);
  double value = static_cast<double>(size_bytes);
  const char* unit = "B";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

std::string table(const std::vector<std::vector<std::string>>& rows, const std::vector<size_t>& right) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    if (row.size() > widths.size()) widths.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], shown_width(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - shown_width(row[i]), ' ');
      const bool to_right = std::find(right.begin(), right.end(), i) != right.end();
      line += (i == 0 ? "" : "  ") + (to_right ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

void print_json(const nlohmann::json& value) {
  write_out(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

nlohmann::json memory_json(const std::vector<MemoryItem>& items) {
  nlohmann::json out = nlohmann::json::array();
  for (const MemoryItem& item : items) {
    out.push_back({{"what", item.what}, {"size_bytes", item.size_bytes}, {"file_bytes", item.file_bytes}});
  }
  return out;
}

std::string memory_line(const std::vector<MemoryItem>& items) {
  int64_t total = 0;
  std::string parts;
  for (const MemoryItem& item : items) {
    total += item.size_bytes;
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", item.what, size_text(item.size_bytes));
    if (item.file_bytes > 0) parts += " (" + file_share(item) + ")";
  }
  return size_text(total) + ": " + parts;
}

std::string memory_table(const std::vector<MemoryItem>& items) {
  std::vector<std::vector<std::string>> rows;
  int64_t total = 0, from_file = 0;
  for (const MemoryItem& item : items) {
    total += item.size_bytes;
    from_file += item.file_bytes;
    rows.push_back({"  " + item.what, size_text(item.size_bytes), file_share(item)});
  }
  rows.push_back({"  total", size_text(total), file_share({"total", total, from_file})});
  return table(rows, {1});
}

}  // namespace kz::cli
