// Digests of bytes: one that nobody can aim at, one that is fast.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kz {

/// BLAKE2b with 32 bytes of output (RFC 7693), fed in pieces.
class Digest {
 public:
  Digest();
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  /// The digest of all that was added, as 64 hexadecimal digits; the object is of no use afterwards.
  std::string finish();

 private:
  void compress(bool last);

  std::array<uint64_t, 8> state_;
  std::array<std::byte, 128> block_{};
  size_t filled_ = 0;
  uint64_t total_ = 0;
};

/// A 64-bit sum for accidents, not for enemies: every changed word changes it. More than 10 GB/s per core.
uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace kz
