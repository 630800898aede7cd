// The kernel tables of x86-64 processors.
#include <array>

#include "cpu/kernel_tables.h"

namespace kz {

extern const Kernels kKernelsAvx2;
extern const Kernels kKernelsAvx512;

namespace {

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool has_avx2() { return __builtin_cpu_supports("avx2"); }

constexpr std::array<KernelTable, 2> kTables = {{{&kKernelsAvx512, has_avx512}, {&kKernelsAvx2, has_avx2}}};

}  // namespace

std::span<const KernelTable> isa_kernel_tables() { return kTables; }

}  // namespace kz
