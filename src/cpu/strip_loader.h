// Weights on their way from the model file into a block of packed weights, piece by piece.
#pragma once

#include <functional>
#include <span>

#include "core/thread_pool.h"
#include "cpu/packed_plan.h"

namespace kz {

/// What takes the pieces; several threads call it at once.
using PieceWriter = std::function<void(int64_t place, std::span<const std::byte> bytes)>;

/// Reads the files in order of offset in pieces of about half a megabyte, as many at a time as the pool has threads,
/// each into a small buffer of its thread, and packs them into `block`. Where memory is short, the page cache is told
/// to drop what was read. `progress` gets the share 0..1 from the calling thread between pieces; what it throws ends
/// the work. Throws Error(io) when a file cannot be read or has become shorter.
void load_packed(std::span<const WeightSource> sources, const PackedPlan& plan, ThreadPool& pool,
                 const std::function<void(double)>& progress, std::byte* block);
/// The same, handing each piece over instead.
void load_packed(std::span<const WeightSource> sources, const PackedPlan& plan, ThreadPool& pool,
                 const std::function<void(double)>& progress, const PieceWriter& write);

}  // namespace kz
