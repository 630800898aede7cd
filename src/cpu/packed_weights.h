// Weights that the CPU backend keeps in memory of its own.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "core/arena.h"
#include "core/thread_pool.h"
#include "cpu/packed_plan.h"

namespace kz {

/// Owns the blocks of packed and copied weights. A weight that points here has layout `packed` (strip s at
/// data + s * strip_layout(dtype, cols).stride_bytes()), or `file`: its rows were copied as they are.
class PackedWeights {
 public:
  /// Takes in all weights of a plan; returns the block in which each lies at its place. With a folder, and a context
  /// that names the content, the block is a mapped file of that folder where that works.
  const std::byte* load(std::span<const WeightSource> sources, const PackedPlan& plan, ThreadPool& pool,
                        ImportContext& context, const std::string& cache_folder);

  /// Writes block b of row r of a packed weight as a file keeps it.
  static void file_block(const Weight& weight, int64_t r, int64_t b, std::byte* block);

  PackedBytes bytes() const { return bytes_; }

 private:
  const std::byte* load_cached(std::span<const WeightSource> sources, const PackedPlan& plan, ThreadPool& pool,
                               ImportContext& context, const std::string& cache_folder);

  std::vector<Arena> arenas_;
  std::vector<MappedFile> files_;
  PackedBytes bytes_;
};

}  // namespace kz
