// The kernel tables of this build.
#pragma once

#include <span>
#include <string_view>

#include "cpu/kernels.h"

namespace kz {

struct KernelTable {
  const Kernels* kernels;
  bool (*runs_here)();  ///< whether this CPU (and its operating system) can run it
};

/// Tables of the architecture's own instruction sets, best first; x86/tables.cpp, arm/tables.cpp or, for other
/// processors, portable/tables.cpp (CMake picks one). The baseline table `scalar` is not among them.
std::span<const KernelTable> isa_kernel_tables();

/// The table with this name, or the best that runs here for "auto". Throws Error(bad_argument) for an unknown name and
/// Error(unsupported) for a table that this CPU cannot run; both name the ones that do.
const Kernels& select_kernels(std::string_view isa);

}  // namespace kz
