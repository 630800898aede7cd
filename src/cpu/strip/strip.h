// The strip: the one layout of a weight matrix that every processor reads without moving weights across lanes.
//
// A strip holds 32 output rows (its columns c = 0..31) over all inputs k, in exactly the bytes that the same rows have
// in a GGUF file; rows beyond the matrix are zero blocks. Blocks of 32 (or 256) inputs lie in groups of two, so that a
// group is a multiple of 128 bytes (a vector of the NPU) and a product reads one stream; an odd last block is a group
// of its own. Inside a group the areas follow each other, each for its first block, then its second (P = 0,2,1,3):
//
//   codes    4-bit types, per 32 k: 512 bytes; weight (k, c) in byte 128 (k>>3) + 4 c + P(k&3), low nibble if (k&7) < 4
//            8-bit types, per 32 k: 1024 bytes; byte 128 (k>>2) + 4 c + P(k&3)
//            16-bit types, per 2 k (a group): 128 bytes; half (k, c) at 4 c + 2 (k&1)
//   high     fifth bits, per 32 k: 128 bytes; byte 4 c + P(k&3), bit k>>2
//            fifth and sixth bits (Q6_K), per 32 k: 256 bytes; byte 128 (k>>4) + 4 c + P(k&3), bits 2 ((k>>2)&3)
//   scales   32-element types: fp16 d of 32 columns (64 bytes)
//            Q4_K, Q5_K: scales s_j and mins m_j of 8 sub-blocks j as planes by column (384 bytes):
//              4 x 32 bytes: low nibble of s_j (j < 4) and of s_(j+4) above it; the same for m; then
//              2 x 32 bytes: two high bits of s_0..s_3 (bit 2 (j&3)), of s_4..s_7; the same for m
//            Q6_K: int8 scales of 16 groups x 32 columns (512)
//   mins     Q4_1, Q5_1: fp16 m (64); Q4_K, Q5_K: fp16 d (64) and dmin (64); Q6_K: fp16 d (64)
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace kz {

/// Output rows of one strip.
inline constexpr int64_t kStripRows = 32;

/// Where the areas of one strip lie.
struct StripLayout {
  int64_t n_blocks = 0;     ///< blocks along the inputs (a 16-bit input counts as one)
  int64_t codes_bytes = 0;  ///< bytes of one block of each area, 32 columns; 0 when a type lacks it
  int64_t high_bytes = 0;
  int64_t scales_bytes = 0;
  int64_t mins_bytes = 0;

  int64_t block_bytes() const { return codes_bytes + high_bytes + scales_bytes + mins_bytes; }
  int64_t size_bytes() const { return n_blocks * block_bytes(); }
  /// From one strip to the next: the size rounded up to 128.
  int64_t stride_bytes() const { return (size_bytes() + 127) / 128 * 128; }

  int64_t codes(int64_t block) const { return place(block, 0, codes_bytes); }
  int64_t high(int64_t block) const { return place(block, codes_bytes, high_bytes); }
  int64_t scales(int64_t block) const { return place(block, codes_bytes + high_bytes, scales_bytes); }
  int64_t mins(int64_t block) const { return place(block, codes_bytes + high_bytes + scales_bytes, mins_bytes); }

 private:
  int64_t place(int64_t block, int64_t before, int64_t bytes) const {
    const int64_t first = block & ~int64_t{1};
    const int64_t in_group = first + 1 < n_blocks ? 2 : 1;
    return first * block_bytes() + in_group * before + (block - first) * bytes;
  }
};

/// True for the types that have a strip form.
bool has_strips(DType dtype) noexcept;

/// cols must be a multiple of the type's block.
StripLayout strip_layout(DType dtype, int64_t cols);

/// Bytes of a whole matrix of rows x cols as strips.
int64_t strips_bytes(DType dtype, int64_t rows, int64_t cols);

/// Writes one strip from n_rows (1..32) rows as they lie in a file, row_bytes(dtype, cols) apart.
void pack_strip(DType dtype, const std::byte* rows, int64_t n_rows, int64_t cols, std::byte* strip);

/// The opposite for one row of a strip: row c (0..31) in file order, byte for byte.
void unpack_strip_row(DType dtype, const std::byte* strip, int64_t c, int64_t cols, std::byte* row);

/// Block b of that row only; not for 16-bit types.
void unpack_strip_block(DType dtype, const StripLayout& layout, const std::byte* strip, int64_t c, int64_t b,
                        std::byte* block);

}  // namespace kz
