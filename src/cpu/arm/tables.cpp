// The kernel tables of 64-bit ARM processors.
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include <array>

#include "cpu/kernel_tables.h"

namespace kz {

extern const Kernels kKernelsNeon;
extern const StripKernels kStripsNeonDotprod;
extern const StripKernels kStripsScalar;

namespace {

bool has_neon() { return (getauxval(AT_HWCAP) & HWCAP_ASIMD) != 0; }

bool has_dotprod() { return has_neon() && (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }

constexpr std::array<KernelTable, 2> kTables = {{
    {"neon_dotprod", &kKernelsNeon, &kStripsNeonDotprod, has_dotprod},
    {"neon", &kKernelsNeon, &kStripsScalar, has_neon},
}};

}  // namespace

std::span<const KernelTable> isa_kernel_tables() { return kTables; }

}  // namespace kz
