// What Linux says about the processor.
#include <algorithm>
#include <cstdio>
#include <string>

#include "core/system.h"
#include "cpu/machine_limits.h"

namespace kz {
namespace {

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

}  // namespace

int64_t last_cache_bytes() {
  int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index);
    largest = std::max(largest, size_of_text(system_text(folder + "/size")));
  }
  return largest;
}

std::string cpu_name() {
  const std::string text = system_text("/proc/cpuinfo");
  for (const char* name : {"model name", "Hardware", "Processor"}) {
    if (const std::string value = system_value(text, name); !value.empty()) return value;
  }
  const std::string maker = system_value(text, "CPU implementer"), part = system_value(text, "CPU part");
  return maker.empty() ? "unknown" : "ARM implementer " + maker + " part " + part;
}

}  // namespace kz
