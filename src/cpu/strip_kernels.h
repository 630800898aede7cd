// What one instruction set gives for products on strips (class q8): plain functions in one constant table.
//
// Like cpu/kernels.h this header is included by files that are compiled with flags the machine may not have:
// fixed-width types and plain structs only. Kernels own no memory, no threads and no state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kz {

/// Rows of activations as 8-bit codes (docs/decisions/arithmetic.md). Per 32 values of a row: scale d = max|x| / 127,
/// codes rint(x / d) in [-127, 127]. Block b of row r lies at index b * n_rows + r, so that the rows of a register tile
/// are neighbours. Inside each group of four codes the middle two are swapped, as weights are in a strip.
struct Q8Rows {
  int64_t n_rows = 0;
  int64_t n_blocks = 0;     ///< cols / 32
  int8_t* codes = nullptr;  ///< 32 per block
  float* scales = nullptr;  ///< 1 per block
  int32_t* sums = nullptr;  ///< 2 per block: sums of codes 0..15 and 16..31
  // Made of the sums once, for the inner loops:
  int32_t* starts = nullptr;     ///< 1 per block: -128 times the sum of its codes, for weights that go in as w + 128
  float* scaled_sums = nullptr;  ///< 1 per block: scale times float(sum of its codes), for types with a minimum
};

/// out[r][32 s + c] = (weights of strip s, column c) . (row r), for n_strips strips one after the other.
struct StripProductArgs {
  int32_t gguf_type = 0;
  const std::byte* strips = nullptr;  ///< 128-byte aligned
  int64_t stride_bytes = 0;           ///< from strip to strip
  int64_t n_strips = 0;
  int64_t cols = 0;
  const Q8Rows* x = nullptr;
  int64_t first_row = 0;  ///< rows [first_row, first_row + n_rows) of x
  int64_t n_rows = 0;
  float* out = nullptr;    ///< of row first_row; may be written up to 32 * n_strips columns
  int64_t out_stride = 0;  ///< floats from row to row
};

struct StripKernels {
  const char* name;
  /// True for the block types that product() knows.
  bool (*knows)(int32_t gguf_type);
  void (*product)(const StripProductArgs& args);
  /// Fills row r of `to` from cols floats (a multiple of 32).
  void (*quantise_row)(const float* x, int64_t r, const Q8Rows& to);
  int64_t least_rows = 1;  ///< of a product
};

}  // namespace kz
