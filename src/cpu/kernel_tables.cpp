#include "cpu/kernel_tables.h"

#include <string>

#include "core/error.h"
#include "cpu/cpu_backend.h"

namespace kz {

extern const Kernels kKernelsScalar;

namespace {

std::string names(bool only_running) {
  std::string list;
  for (const KernelTableInfo& table : cpu_kernel_tables()) {
    if (only_running && !table.runs_here) continue;
    if (!list.empty()) list += ", ";
    list += table.name;
  }
  return list;
}

}  // namespace

std::vector<KernelTableInfo> cpu_kernel_tables() {
  std::vector<KernelTableInfo> tables;
  for (const KernelTable& table : isa_kernel_tables()) tables.push_back({table.kernels->name, table.runs_here()});
  tables.push_back({kKernelsScalar.name, true});
  return tables;
}

const Kernels& select_kernels(std::string_view isa) {
  for (const KernelTable& table : isa_kernel_tables()) {
    if (isa != "auto" && isa != table.kernels->name) continue;
    if (table.runs_here()) return *table.kernels;
    if (isa == "auto") continue;
    throw Error(ErrorCode::unsupported,
                "isa: this CPU cannot run '" + std::string(isa) + "', expected auto or one of " + names(true));
  }
  if (isa == "auto" || isa == kKernelsScalar.name) return kKernelsScalar;
  throw Error(ErrorCode::bad_argument, "isa: found '" + std::string(isa) + "', expected auto or one of " + names(true) +
                                           " (in this build: " + names(false) + ")");
}

}  // namespace kz
