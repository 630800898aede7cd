// Processors without a folder of their own: the baseline table is the only one.
#include "cpu/kernel_tables.h"

namespace kz {

std::span<const PeakEntry> isa_peak_loops() { return {}; }

std::span<const KernelTable> isa_kernel_tables() { return {}; }

}  // namespace kz
