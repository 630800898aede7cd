// The rate of tdpbssd on full tiles: 16 rows times 16 columns of 64 inputs each.
#ifndef __AMX_INT8__
#error "compile this file with -mamx-tile -mamx-int8"
#endif
#include "cpu/peak_loop.h"
#include "cpu/x86/amx_tiles.h"

namespace kz {
namespace {

constexpr int kSums = 4;  // the unit takes a new product every 16 cycles and ends it after about 50

int32_t run(int64_t n_rounds) {
  alignas(64) static constexpr uint8_t kCodes[1024] = {1, 2, 3, 4, 5, 6, 7};
  alignas(64) int32_t sums[256];
  TileConfig config;
  for (int t = 0; t < 8; ++t) config.set(t, 16, 64);
  config.load();
  asm volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" ::);
  asm volatile("tileloadd (%0,%1,1), %%tmm4\n\ttileloadd (%0,%1,1), %%tmm5" ::"r"(kCodes), "r"(int64_t{64}) : "memory");
  for (int64_t round = 0; round < n_rounds; ++round) {
    asm volatile(
        "tdpbssd %%tmm5, %%tmm4, %%tmm0\n\ttdpbssd %%tmm5, %%tmm4, %%tmm1\n\t"
        "tdpbssd %%tmm5, %%tmm4, %%tmm2\n\ttdpbssd %%tmm5, %%tmm4, %%tmm3" ::);
  }
  int32_t seen = 0;
  asm volatile("tilestored %%tmm0, (%0,%1,1)" ::"r"(sums), "r"(int64_t{64}) : "memory");
  seen ^= sums[0] ^ sums[255];
  asm volatile("tilestored %%tmm3, (%0,%1,1)" ::"r"(sums), "r"(int64_t{64}) : "memory");
  seen ^= sums[0] ^ sums[255];
  release_tiles();
  return seen;
}

}  // namespace

extern const PeakLoop kPeakAmxInt8;
constexpr PeakLoop kPeakAmxInt8 = {"amx_int8", kSums* int64_t{16} * 16 * 64, run};

}  // namespace kz
