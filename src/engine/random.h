// A small random generator whose numbers are the same on every machine.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace kz {

/// xoshiro256++ (Blackman and Vigna, 2019): 256 bits of state, period 2^256 - 1. The state is filled by splitmix64
/// (Steele, Lea, Flood, 2014) from one 64-bit seed, as its authors advise.
class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15u;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
      word = z ^ (z >> 31);
    }
  }
  explicit Random(const std::array<uint64_t, 4>& state) : state_(state) {}

  uint64_t next() {
    auto& [a, b, c, d] = state_;
    const uint64_t result = std::rotl(a + d, 23) + a;
    const uint64_t shifted = b << 17;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = std::rotl(d, 45);
    return result;
  }

  /// Uniform in [0, 1): the upper 53 bits as a fraction.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::array<uint64_t, 4> state_{};
};

/// A fresh seed in [0, 2^31) from the system.
int64_t fresh_seed();

}  // namespace kz
