// The CPU backend: threads and one kernel table per instruction set.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"

namespace kz {

struct CpuOptions {
  int n_threads = 0;         ///< 0: one per core this process may use
  std::string isa = "auto";  ///< a name of cpu_kernel_tables(), or "auto": the best that runs here
  /// What products take their activations as: "f32" (class f32, weights used in place), or "q8" (class q8: weights of
  /// the common types are packed into strips in memory of the backend, activations become 8-bit codes).
  std::string activations = "f32";
  std::vector<int> cores = {};    ///< cores that the workers stay on (ThreadPool); empty: wherever the system puts them
  std::string packed_cache = {};  ///< folder that keeps packed weights as files; empty: none
};

/// A kernel table of this build, and whether this machine can run it.
struct KernelTableInfo {
  std::string_view name;
  bool runs_here = false;
};

/// All tables of this build, best first.
std::vector<KernelTableInfo> cpu_kernel_tables();

/// Throws Error(bad_argument) for an unknown table, Error(unsupported) for one that this CPU cannot run; both name
/// the ones that do.
std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options);

}  // namespace kz
