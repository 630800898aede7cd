// The kernel tables of x86-64 processors.
#include <array>

#include "cpu/kernel_tables.h"

namespace kz {

extern const Kernels kKernelsAvx2;
extern const Kernels kKernelsAvx512;
extern const StripKernels kStripsAvx2;
extern const StripKernels kStripsAvxVnni;
extern const StripKernels kStripsAvx512Vnni;
extern const PeakLoop kPeakAvx2;
extern const PeakLoop kPeakAvxVnni;
extern const PeakLoop kPeakAvx512Vnni;

namespace {

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

bool has_avxvnni() { return has_avx2() && __builtin_cpu_supports("avxvnni"); }

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool has_avx512vnni() { return has_avx512() && __builtin_cpu_supports("avx512vnni"); }

constexpr std::array<KernelTable, 4> kTables = {{
    {"avx512vnni", &kKernelsAvx512, &kStripsAvx512Vnni, has_avx512vnni},
    {"avx512", &kKernelsAvx512, &kStripsAvx2, has_avx512},
    {"avxvnni", &kKernelsAvx2, &kStripsAvxVnni, has_avxvnni},
    {"avx2", &kKernelsAvx2, &kStripsAvx2, has_avx2},
}};

constexpr std::array<PeakEntry, 3> kPeaks = {{
    {&kPeakAvx512Vnni, has_avx512vnni},
    {&kPeakAvxVnni, has_avxvnni},
    {&kPeakAvx2, has_avx2},
}};

}  // namespace

std::span<const PeakEntry> isa_peak_loops() { return kPeaks; }

std::span<const KernelTable> isa_kernel_tables() { return kTables; }

}  // namespace kz
