// Which weights the CPU backend keeps in memory of its own, and where each lies in one block of it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace kz {

/// How a weight is kept.
enum class Keeping {
  in_place,  ///< where it lies: in the mapped file
  copied,    ///< its rows as they are
  strips,
};

/// One weight of the block. It is made of units that are read and written independently: strips, or all of its rows.
struct PackedItem {
  size_t source = 0;  ///< which of the sources
  bool strips = true;
  int64_t n_units = 0;
  int64_t unit_rows = 0;   ///< rows of a unit (the last may have fewer)
  int64_t unit_bytes = 0;  ///< of a unit in the block
  int64_t row_bytes = 0;   ///< in the file
  int64_t place = 0;       ///< of the first unit in the block, a multiple of 128
  int64_t size_bytes() const { return n_units * unit_bytes; }
};

/// All weights of the block, in the order in which their bytes lie in the files.
struct PackedPlan {
  std::vector<PackedItem> items;
  int64_t block_bytes = 0;
  int64_t file_bytes = 0;  ///< of the same weights in their files
};

PackedPlan plan_packing(std::span<const WeightSource> sources,
                        const std::function<Keeping(const WeightSource&)>& keeping);

/// The plan in words, one line per weight: equal when the block of the same file bytes would be equal.
std::string plan_text(const PackedPlan& plan, std::span<const WeightSource> sources);

}  // namespace kz
