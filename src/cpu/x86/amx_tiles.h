// The configuration of AMX's tile registers. Written as assembly with a memory operand of all 64 bytes: the intrinsic
// of some compilers loads it wrongly.
#pragma once

#include <cstdint>

namespace kz {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  [[gnu::always_inline]] inline void set(int tile, int n_rows, int n_row_bytes) {
    rows[tile] = static_cast<uint8_t>(n_rows);
    row_bytes[tile] = static_cast<uint16_t>(n_row_bytes);
  }
  /// For this thread, until release_tiles().
  [[gnu::always_inline]] inline void load() const { asm volatile("ldtilecfg %0" ::"m"(*this)); }
};
static_assert(sizeof(TileConfig) == 64);

[[gnu::always_inline]] inline void release_tiles() { asm volatile("tilerelease" ::: "memory"); }

}  // namespace
}  // namespace kz
