// What Linux says about the processor.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "cpu/machine_limits.h"

namespace kz {
namespace {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// The first bytes of a file of the system, empty when it is not there.
std::string beginning_of(const std::string& path) {
  const std::unique_ptr<std::FILE, FileCloser> file(std::fopen(path.c_str(), "r"));
  if (!file) return {};
  std::string text(size_t{1} << 14, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  return text;
}

/// "480K" or "32M" in bytes, 0 when it is neither.
int64_t size_of_text(const std::string& text) {
  char unit = 'B';
  long long number = 0;
  if (std::sscanf(text.c_str(), "%lld%c", &number, &unit) < 1) return 0;
  const int64_t value = number;
  if (unit == 'K') return value << 10;
  if (unit == 'M') return value << 20;
  return unit == 'G' ? value << 30 : value;
}

/// The value of a "name : value" line, empty when there is none.
std::string value_of(const std::string& text, const std::string& name) {
  const size_t at = text.starts_with(name) ? 0 : text.find("\n" + name);
  if (at == std::string::npos) return {};
  const size_t colon = text.find(':', at), end = text.find('\n', at + 1);
  if (colon == std::string::npos || colon > end) return {};
  const size_t first = text.find_first_not_of(" \t", colon + 1);
  return first == std::string::npos || first >= end ? std::string() : text.substr(first, end - first);
}

}  // namespace

int64_t last_cache_bytes() {
  int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    largest = std::max(largest, size_of_text(beginning_of(folder + "/size")));
  }
  return largest;
}

std::string cpu_name() {
  const std::string text = beginning_of("/proc/cpuinfo");
  for (const char* name : {"model name", "Hardware", "Processor"}) {
    if (const std::string value = value_of(text, name); !value.empty()) return value;
  }
  const std::string maker = value_of(text, "CPU implementer"), part = value_of(text, "CPU part");
  return maker.empty() ? "unknown" : "ARM implementer " + maker + " part " + part;
}

}  // namespace kz
