// File rows -> strips: which part of a block goes where, type by type.
#include <bit>
#include <cstring>

#include "core/error.h"
#include "cpu/strip/strip.h"
#include "cpu/template/strip_pack.h"

namespace kz {
namespace {

static_assert(std::endian::native == std::endian::little, "blocks of a file are little-endian");

constexpr int64_t kMostBlockBytes = 256;

void pack_block_32(DType dtype, const PackBlock& b) {
  int64_t at = 2;
  pack_halves_of(b, 0, b.scales);
  if (dtype == DType::q4_1 || dtype == DType::q5_1) {
    pack_halves_of(b, at, b.mins);
    at += 2;
  }
  if (dtype == DType::q5_0 || dtype == DType::q5_1) {
    pack_fifth_32(b, at);
    at += 4;
  }
  if (dtype == DType::q8_0) {
    pack_codes_8(b, at);
  } else {
    pack_codes_4(b, at);
  }
}

void pack_block_k45(DType dtype, const PackBlock& b) {
  pack_halves_of(b, 0, b.mins);
  pack_halves_of(b, 2, b.mins + 64);
  pack_scales_6(b, 4);
  int64_t codes = 16;
  if (dtype == DType::q5_k) {
    pack_fifth_256(b, codes);
    codes += 32;
  }
  for (int64_t pair = 0; pair < 4; ++pair) pack_tiles_4(b, codes + 32 * pair, 2 * pair, 2 * pair + 1);
}

void pack_block_k6(const PackBlock& b) {
  for (int64_t part = 0; part < 4; ++part) {
    const int64_t tile = 4 * (part / 2) + part % 2;
    pack_tiles_4(b, 32 * part, tile, tile + 2);
  }
  pack_sixth(b, 128);
  pack_scales_8(b, 192);
  pack_halves_of(b, 208, b.mins);
}

void pack_block(DType dtype, const PackBlock& b) {
  switch (dtype) {
    case DType::q4_k:
    case DType::q5_k:
      return pack_block_k45(dtype, b);
    case DType::q6_k:
      return pack_block_k6(b);
    default:
      return pack_block_32(dtype, b);
  }
}

/// A pair of 16-bit inputs shares the four bytes of its column; an odd last input stands alone.
void pack_halves(const uint8_t* row, uint8_t* strip, int64_t c, int64_t first, int64_t cols) {
  for (int64_t k = first; k + 1 < cols; k += 2) std::memcpy(strip + 64 * k + 4 * c, row + 2 * k, 4);
  if (cols % 2 != 0) std::memcpy(strip + 64 * (cols - 1) + 2 * c, row + 2 * (cols - 1), 2);
}

void pack_strip_16(const uint8_t* rows, int64_t stride, int64_t n_rows, int64_t cols, uint8_t* strip) {
  const int64_t turned_rows = n_rows / 4 * 4, turned_cols = cols / 8 * 8;
  for (int64_t k = 0; k < turned_cols; k += 8) {
    for (int64_t c = 0; c < turned_rows; c += 4) {
      Words w[4];
      load_turned(rows + c * stride + 2 * k, stride, w);
      for (int64_t i = 0; i < 4; ++i) store_words(strip + 64 * (k + 2 * i) + 4 * c, w[i]);
    }
  }
  for (int64_t c = 0; c < n_rows; ++c)
    pack_halves(rows + c * stride, strip, c, c < turned_rows ? turned_cols : 0, cols);
}

}  // namespace

void pack_strip(DType dtype, const std::byte* rows, int64_t n_rows, int64_t cols, std::byte* strip) {
  KZ_CHECK(n_rows >= 1 && n_rows <= kStripRows);
  const StripLayout layout = strip_layout(dtype, cols);
  const DTypeInfo& info = dtype_info(dtype);
  const int64_t bytes = row_bytes(dtype, cols);
  const auto* from = reinterpret_cast<const uint8_t*>(rows);
  auto* to = reinterpret_cast<uint8_t*>(strip);
  if (info.block_elements == 1) {
    if (n_rows < kStripRows) std::memset(strip, 0, static_cast<size_t>(layout.size_bytes()));
    pack_strip_16(from, bytes, n_rows, cols, to);
  } else {
    KZ_CHECK(info.block_bytes <= kMostBlockBytes);
    uint8_t padded[kStripRows * kMostBlockBytes];  // a block of all columns, zeros where rows are missing
    if (n_rows < kStripRows) std::memset(padded, 0, sizeof(padded));
    // Block by block over all columns: the part of the strip in work stays in the first cache.
    for (int64_t b = 0; b < layout.n_blocks; ++b) {
      const uint8_t* column = from + b * info.block_bytes;
      PackBlock block{
          column, bytes, to + layout.codes(b), to + layout.high(b), to + layout.scales(b), to + layout.mins(b)};
      if (n_rows < kStripRows) {
        for (int64_t c = 0; c < n_rows; ++c) {
          std::memcpy(padded + c * kMostBlockBytes, column + c * bytes, static_cast<size_t>(info.block_bytes));
        }
        block.base = padded;
        block.stride = kMostBlockBytes;
      }
      pack_block(dtype, block);
    }
  }
  std::memset(strip + layout.size_bytes(), 0, static_cast<size_t>(layout.stride_bytes() - layout.size_bytes()));
}

}  // namespace kz
