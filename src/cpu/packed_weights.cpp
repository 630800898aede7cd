#include "cpu/packed_weights.h"

#include <algorithm>

namespace kz {

void PackedWeights::pack(Weight& weight, ThreadPool& pool) {
  const int64_t stride = strip_layout(weight.dtype, weight.cols).stride_bytes();
  const int64_t n_strips = (weight.rows + kStripRows - 1) / kStripRows;
  Arena arena("packed " + weight.name, static_cast<size_t>(n_strips * stride));
  arena.prefer_large_pages();
  const std::byte* rows = weight.data;
  std::byte* strips = arena.data();
  pool.parallel_for(n_strips, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t s = begin; s < end; ++s) {
      const int64_t first = s * kStripRows;
      pack_strip(weight.dtype, rows + first * weight.row_bytes, std::min(kStripRows, weight.rows - first), weight.cols,
                 strips + s * stride);
    }
  });
  bytes_.own += static_cast<int64_t>(arena.size_bytes());
  bytes_.in_file += weight.rows * weight.row_bytes;
  weight.data = strips;
  weight.layout = WeightLayout::packed;
  arenas_.push_back(std::move(arena));
}

void PackedWeights::file_block(const Weight& weight, int64_t r, int64_t b, std::byte* block) {
  const StripLayout layout = strip_layout(weight.dtype, weight.cols);
  unpack_strip_block(weight.dtype, layout, weight.data + r / kStripRows * layout.stride_bytes(), r % kStripRows, b,
                     block);
}

}  // namespace kz
