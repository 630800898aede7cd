#include "engine/bench_counts.h"

#include <algorithm>
#include <utility>

namespace kz {

std::vector<KernelPlacement> placement_since(const std::vector<KernelPlacement>& after,
                                             const std::vector<KernelPlacement>& before) {
  std::vector<KernelPlacement> lines;
  for (KernelPlacement line : after) {
    const auto old = std::find_if(before.begin(), before.end(), [&](const KernelPlacement& other) {
      return other.verb == line.verb && other.weights == line.weights && other.kernel == line.kernel &&
             other.device == line.device;
    });
    if (old != before.end()) {
      line.calls -= old->calls;
      line.bytes -= old->bytes;
      line.seconds -= old->seconds;
      line.n_timed -= old->n_timed;
      line.multiply_adds -= old->multiply_adds;
    }
    if (line.calls > 0) lines.push_back(std::move(line));
  }
  return lines;
}

void count_into(BenchResult& result, const std::vector<KernelPlacement>& lines) {
  result.weight_bytes = result.kv_bytes = result.state_bytes = result.multiply_adds = 0;
  for (const KernelPlacement& line : lines) {
    if (line.verb == "linear") result.weight_bytes += line.bytes;
    if (line.verb == "attention") result.kv_bytes += line.bytes;
    if (line.verb == "delta_rule") result.state_bytes += line.bytes;
    result.multiply_adds += line.multiply_adds;
  }
}

}  // namespace kz
