#include "cpu/packed_weights.h"

#include "cpu/strip/strip.h"
#include "cpu/strip_loader.h"

namespace kz {

const std::byte* PackedWeights::load(std::span<const WeightSource> sources, const PackedPlan& plan, ThreadPool& pool,
                                     ImportContext& context) {
  if (plan.items.empty()) return nullptr;
  Arena arena("packed weights", static_cast<size_t>(plan.block_bytes));
  arena.prefer_large_pages();
  load_packed(sources, plan, pool, context.progress, arena.data());
  bytes_.own += plan.block_bytes;
  bytes_.in_file += plan.file_bytes;
  arenas_.push_back(std::move(arena));
  return arenas_.back().data();
}

void PackedWeights::file_block(const Weight& weight, int64_t r, int64_t b, std::byte* block) {
  const StripLayout layout = strip_layout(weight.dtype, weight.cols);
  unpack_strip_block(weight.dtype, layout, weight.data + r / kStripRows * layout.stride_bytes(), r % kStripRows, b,
                     block);
}

}  // namespace kz
