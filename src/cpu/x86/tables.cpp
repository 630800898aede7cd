// The kernel tables of x86-64 processors.
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

#include "cpu/kernel_tables.h"
#include "cpu/strip_check.h"

namespace kz {

extern const Kernels kKernelsAvx2;
extern const Kernels kKernelsAvx512;
extern const StripKernels kStripsAvx2;
extern const StripKernels kStripsAvxVnni;
extern const StripKernels kStripsAvx512Vnni;
extern const StripKernels kStripsAmxInt8;
extern const PeakLoop kPeakAvx2;
extern const PeakLoop kPeakAvxVnni;
extern const PeakLoop kPeakAvx512Vnni;
extern const PeakLoop kPeakAmxInt8;

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

/// The tile registers of AMX are large: Linux wants to be asked before a process may use them.
bool tile_registers_granted() {
  constexpr int64_t kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int64_t kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_amx_int8() {
  static const bool runs = has_avx512vnni() && __builtin_cpu_supports("amx-tile") &&
                           __builtin_cpu_supports("amx-int8") && tile_registers_granted() &&
                           equals_scalar(kStripsAmxInt8);
  return runs;
}

constexpr std::array<KernelTable, 5> kTables = {{
    {"amx_int8", &kKernelsAvx512, &kStripsAvx512Vnni, has_amx_int8, &kStripsAmxInt8},
    {"avx512vnni", &kKernelsAvx512, &kStripsAvx512Vnni, has_avx512vnni, nullptr},
    {"avx512", &kKernelsAvx512, &kStripsAvx2, has_avx512, nullptr},
    {"avxvnni", &kKernelsAvx2, &kStripsAvxVnni, has_avxvnni, nullptr},
    {"avx2", &kKernelsAvx2, &kStripsAvx2, has_avx2, nullptr},
}};

constexpr std::array<PeakEntry, 4> kPeaks = {{
    {&kPeakAmxInt8, has_amx_int8},
    {&kPeakAvx512Vnni, has_avx512vnni},
    {&kPeakAvxVnni, has_avxvnni},
    {&kPeakAvx2, has_avx2},
}};

}  // namespace

std::span<const PeakEntry> isa_peak_loops() { return kPeaks; }

std::span<const KernelTable> isa_kernel_tables() { return kTables; }

}  // namespace kz
