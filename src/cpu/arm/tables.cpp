// The kernel tables of 64-bit ARM processors.
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include <array>

#include "cpu/kernel_tables.h"

namespace kz {

extern const Kernels kKernelsNeon;

namespace {

bool has_neon() { return (getauxval(AT_HWCAP) & HWCAP_ASIMD) != 0; }

constexpr std::array<KernelTable, 1> kTables = {{{&kKernelsNeon, has_neon}}};

}  // namespace

std::span<const KernelTable> isa_kernel_tables() { return kTables; }

}  // namespace kz
