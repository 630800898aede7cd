#include "cpu/kernel_tables.h"

#include <string>

#include "core/error.h"
#include "cpu/cpu_backend.h"

namespace kz {

extern const Kernels kKernelsScalar;
extern const StripKernels kStripsScalar;

namespace {

constexpr KernelTable kScalarTable{"scalar", &kKernelsScalar, &kStripsScalar, [] { return true; }};

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
  for (const KernelTable& table : isa_kernel_tables()) tables.push_back({table.name, table.runs_here()});
  tables.push_back({kScalarTable.name, true});
  return tables;
}

const KernelTable& select_kernels(std::string_view isa) {
  for (const KernelTable& table : isa_kernel_tables()) {
    if (isa != "auto" && isa != table.name) continue;
    if (table.runs_here()) return table;
    if (isa == "auto") continue;
    throw Error(ErrorCode::unsupported,
                "isa: this CPU cannot run '" + std::string(isa) + "', expected auto or one of " + names(true));
  }
  if (isa == "auto" || isa == kScalarTable.name) return kScalarTable;
  throw Error(ErrorCode::bad_argument, "isa: found '" + std::string(isa) + "', expected auto or one of " + names(true) +
                                           " (in this build: " + names(false) + ")");
}

}  // namespace kz
