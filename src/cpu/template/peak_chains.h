// The loop of a PeakLoop, written once: chains of one instruction on registers, enough of them that none waits for
// itself.
//
// A Unit supplies
//
//   kChains     chains side by side, at most 20
//   Sum         a vector of int32
//   step(sum)   the instruction, on codes that the compiler cannot take out of the loop
#pragma once

#include "cpu/peak_loop.h"

namespace kz {
namespace {

template <class Unit>
int32_t run_chains(int64_t n_rounds) {
  typename Unit::Sum sums[Unit::kChains] = {};
  for (int64_t round = 0; round < n_rounds; ++round) {
#pragma GCC unroll 20
    for (int i = 0; i < Unit::kChains; ++i) sums[i] = Unit::step(sums[i]);
  }
  typename Unit::Sum all = sums[0];
  for (int i = 1; i < Unit::kChains; ++i) all ^= sums[i];
  int32_t lanes[sizeof(all) / sizeof(int32_t)];
  __builtin_memcpy(lanes, &all, sizeof(all));
  return lanes[0] + lanes[sizeof(all) / sizeof(int32_t) - 1];
}

/// Each step multiplies kCodes pairs of codes.
template <class Unit, int kCodes>
constexpr PeakLoop peak_loop(const char* name) {
  return {name, Unit::kChains * int64_t{kCodes}, run_chains<Unit>};
}

}  // namespace
}  // namespace kz
