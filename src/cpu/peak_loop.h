// How fast one instruction set multiplies 8-bit codes when nothing else is in the way: the limit that products on
// strips are measured against.
//
// Like cpu/kernels.h this header is included by files that are compiled with flags the machine may not have.
#pragma once

#include <cstdint>

namespace kz {

struct PeakLoop {
  /// The name of the strip kernels that use this instruction.
  const char* name;
  /// Multiply-adds of one round.
  int64_t round_multiply_adds;
  /// Runs rounds on registers alone; what comes out depends on all of them, so that nothing can be left out.
  int32_t (*run)(int64_t n_rounds);
};

}  // namespace kz
