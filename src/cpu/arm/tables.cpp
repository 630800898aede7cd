// The kernel tables of 64-bit ARM processors.
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include <array>

#include "cpu/kernel_tables.h"

namespace kz {

extern const Kernels kKernelsNeon;
extern const StripKernels kStripsNeonDotprod;
extern const StripKernels kStripsNeonI8mm;
extern const StripKernels kStripsScalar;
extern const PeakLoop kPeakNeonDotprod;
extern const PeakLoop kPeakNeonI8mm;

namespace {

bool has_neon() { return (getauxval(AT_HWCAP) & HWCAP_ASIMD) != 0; }

bool has_dotprod() { return has_neon() && (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }

bool has_i8mm() { return has_dotprod() && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0; }

constexpr std::array<KernelTable, 3> kTables = {{
    {"neon_i8mm", &kKernelsNeon, &kStripsNeonI8mm, has_i8mm},
    {"neon_dotprod", &kKernelsNeon, &kStripsNeonDotprod, has_dotprod},
    {"neon", &kKernelsNeon, &kStripsScalar, has_neon},
}};

constexpr std::array<PeakEntry, 2> kPeaks = {{
    {&kPeakNeonI8mm, has_i8mm},
    {&kPeakNeonDotprod, has_dotprod},
}};

}  // namespace

std::span<const PeakEntry> isa_peak_loops() { return kPeaks; }

std::span<const KernelTable> isa_kernel_tables() { return kTables; }

}  // namespace kz
