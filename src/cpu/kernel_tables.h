// The kernel tables of this build.
#pragma once

#include <span>
#include <string_view>

#include "cpu/kernels.h"
#include "cpu/peak_loop.h"
#include "cpu/strip_kernels.h"

namespace kz {

/// What one kind of CPU runs: kernels of class f32 and products on strips (class q8).
struct KernelTable {
  std::string_view name;
  const Kernels* kernels;
  const StripKernels* strips;
  bool (*runs_here)();                    ///< whether this CPU (and its operating system) can run it
  const StripKernels* batches = nullptr;  ///< products on strips of many rows, where they differ from `strips`
};

/// Tables of the architecture's own instruction sets, best first; x86/tables.cpp, arm/tables.cpp or, for other
/// processors, portable/tables.cpp (CMake picks one). The baseline table `scalar` is not among them.
std::span<const KernelTable> isa_kernel_tables();

/// A loop that shows the peak of an instruction, and whether this CPU has it.
struct PeakEntry {
  const PeakLoop* loop;
  bool (*runs_here)();
};

/// The peak loops of the architecture's instruction sets, best first.
std::span<const PeakEntry> isa_peak_loops();

/// The table with this name, or the best that runs here for "auto". Throws Error(bad_argument) for an unknown name and
/// Error(unsupported) for a table that this CPU cannot run; both name the ones that do.
const KernelTable& select_kernels(std::string_view isa);

}  // namespace kz
