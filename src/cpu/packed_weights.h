// Weights that the CPU backend keeps in strips, in memory of its own.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "core/arena.h"
#include "core/thread_pool.h"
#include "cpu/strip/strip.h"

namespace kz {

/// Owns the strips of all packed weights. A weight that points here has layout `packed`: strip s at
/// data + s * strip_layout(dtype, cols).stride_bytes().
class PackedWeights {
 public:
  /// Packs the rows of a weight that lies in a file and lets it point to the strips.
  void pack(Weight& weight, ThreadPool& pool);

  /// Writes block b of row r of a packed weight as a file keeps it.
  static void file_block(const Weight& weight, int64_t r, int64_t b, std::byte* block);

  PackedBytes bytes() const { return bytes_; }

 private:
  std::vector<Arena> arenas_;
  PackedBytes bytes_;
};

}  // namespace kz
