// What a repetition added to the engine's counters.
#pragma once

#include <kazeia/bench.h>

#include <vector>

namespace kz {

/// The lines of `after`, less what `before` had; lines without a new call are left out.
std::vector<KernelPlacement> placement_since(const std::vector<KernelPlacement>& after,
                                             const std::vector<KernelPlacement>& before);
/// Sets the counts per repetition of `result` from the lines of one.
void count_into(BenchResult& result, const std::vector<KernelPlacement>& lines);

}  // namespace kz
