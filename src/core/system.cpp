#include "core/system.h"

#include <unistd.h>

#include <charconv>

#include "core/error.h"
#include "core/file.h"

namespace kz {

std::string system_text(const std::string& path) {
  try {
    return read_text_file(path);
  } catch (const Error&) {
    return {};
  }
}

std::string system_value(const std::string& text, const std::string& name) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    const size_t colon = line.find(':');
    const size_t name_end = colon == 0 || colon == std::string::npos ? colon : line.find_last_not_of(" \t", colon - 1);
    if (name_end == std::string::npos || line.compare(0, name_end + 1, name) != 0) continue;
    const size_t first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? std::string() : line.substr(first);
  }
  return {};
}

int64_t system_bytes(const std::string& text, const std::string& name) {
  const std::string value = system_value(text, name);
  int64_t kibibytes = 0;
  const auto parsed = std::from_chars(value.data(), value.data() + value.size(), kibibytes);
  constexpr int64_t kMost = INT64_MAX / 1024;
  return parsed.ec == std::errc() && kibibytes >= 0 && kibibytes <= kMost ? kibibytes * 1024 : 0;
}

int64_t available_memory_bytes() { return system_bytes(system_text("/proc/meminfo"), "MemAvailable"); }

int64_t machine_memory_bytes() {
  const int64_t n_pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  return n_pages > 0 && page_bytes > 0 ? n_pages * page_bytes : 0;
}

}  // namespace kz
