#include "cpu/packed_weights.h"

#include "cpu/packed_cache.h"
#include "cpu/strip/strip.h"
#include "cpu/strip_loader.h"

namespace kz {

const std::byte* PackedWeights::load(std::span<const WeightSource> sources, const PackedPlan& plan, ThreadPool& pool,
                                     ImportContext& context, const std::string& cache_folder) {
  if (plan.items.empty()) return nullptr;
  bytes_.own += plan.block_bytes;
  bytes_.in_file += plan.file_bytes;
  if (!cache_folder.empty() && !context.content_key.empty()) {
    if (const std::byte* block = load_cached(sources, plan, pool, context, cache_folder)) return block;
  }
  Arena arena("packed weights", static_cast<size_t>(plan.block_bytes));
  arena.prefer_large_pages();
  load_packed(sources, plan, pool, context.progress, arena.data());
  arenas_.push_back(std::move(arena));
  return arenas_.back().data();
}

const std::byte* PackedWeights::load_cached(std::span<const WeightSource> sources, const PackedPlan& plan,
                                            ThreadPool& pool, ImportContext& context, const std::string& cache_folder) {
  const PackedCache cache(cache_folder, sources, plan, context);
  std::optional<MappedFile> file = cache.open(pool, context.notes);
  if (!file) file = cache.create(pool, context);
  if (!file) return nullptr;
  bytes_.in_cache += plan.block_bytes;
  files_.push_back(std::move(*file));
  return PackedCache::block(files_.back());
}

void PackedWeights::file_block(const Weight& weight, int64_t r, int64_t b, std::byte* block) {
  const StripLayout layout = strip_layout(weight.dtype, weight.cols);
  unpack_strip_block(weight.dtype, layout, weight.data + r / kStripRows * layout.stride_bytes(), r % kStripRows, b,
                     block);
}

}  // namespace kz
