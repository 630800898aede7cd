// The layout of strips, and strips -> file rows, one weight at a time: slow and plain, the check of strip_pack.cpp.
#include "cpu/strip/strip.h"

#include <array>
#include <cstring>

#include "core/error.h"

namespace kz {
namespace {

/// Inputs of one block and the bytes of each area of it for 32 columns.
struct AreaBytes {
  int64_t inputs;
  int64_t codes, high, scales, mins;
};

AreaBytes area_bytes(DType dtype) {
  switch (dtype) {
    case DType::q4_0:
    case DType::iq4_nl:
      return {32, 512, 0, 64, 0};
    case DType::q4_1:
      return {32, 512, 0, 64, 64};
    case DType::q5_0:
      return {32, 512, 128, 64, 0};
    case DType::q5_1:
      return {32, 512, 128, 64, 64};
    case DType::q8_0:
      return {32, 1024, 0, 64, 0};
    case DType::q4_k:
      return {256, 4096, 0, 384, 128};
    case DType::q5_k:
      return {256, 4096, 1024, 384, 128};
    case DType::q6_k:
      return {256, 4096, 2048, 512, 64};
    case DType::f16:
    case DType::bf16:
      return {1, 64, 0, 0, 0};
    default:
      return {0, 0, 0, 0, 0};
  }
}

/// The place of k & 3 inside a group of four bytes: the middle two are swapped so that one table look-up on the NPU
/// yields halves in its matrix unit's order.
constexpr std::array<int64_t, 4> kPlace{0, 2, 1, 3};

/// Column c of one block of a strip; inputs k count from the start of the block.
class BlockColumn {
 public:
  BlockColumn(const StripLayout& layout, const std::byte* strip, int64_t block, int64_t c)
      : codes_(at(strip, layout.codes(block), 4 * c)),
        high_(at(strip, layout.high(block), 4 * c)),
        scales_(at(strip, layout.scales(block), c)),
        mins_(at(strip, layout.mins(block), 2 * c)),
        c_(c) {}

  uint32_t nibble(int64_t k) const {
    const uint32_t byte = codes_[128 * (k >> 3) + place(k)];
    return (k & 7) < 4 ? byte & 15u : byte >> 4;
  }
  uint8_t byte_code(int64_t k) const { return codes_[128 * (k >> 2) + place(k)]; }
  uint32_t fifth(int64_t k) const { return (high_[128 * (k >> 5) + place(k)] >> ((k & 31) >> 2)) & 1u; }
  uint32_t two_bits(int64_t k) const { return (high_[128 * (k >> 4) + place(k)] >> (2 * ((k >> 2) & 3))) & 3u; }

  /// fp16 scale of a 32-element block; fp16 m, or d, or (second = 1) dmin.
  const uint8_t* scale() const { return scales_ + c_; }
  const uint8_t* min(int64_t second = 0) const { return mins_ + 64 * second; }
  /// Six-bit value of sub-block j: which = 0 scales, 1 mins.
  uint32_t six(int64_t j, int64_t which) const {
    const uint32_t low = scales_[128 * which + 32 * (j & 3)] >> (j < 4 ? 0 : 4);
    const uint32_t high = scales_[256 + 64 * which + 32 * (j >> 2)] >> (2 * (j & 3));
    return (low & 15u) | (high & 3u) << 4;
  }
  uint8_t byte_scale(int64_t group) const { return scales_[32 * group]; }

 private:
  static const uint8_t* at(const std::byte* strip, int64_t area, int64_t column) {
    return reinterpret_cast<const uint8_t*>(strip + area + column);
  }
  static int64_t place(int64_t k) { return kPlace[static_cast<size_t>(k & 3)]; }

  const uint8_t *codes_, *high_, *scales_, *mins_;
  int64_t c_;
};

void set_bits(uint8_t& byte, int64_t shift, uint32_t value) { byte = static_cast<uint8_t>(byte | value << shift); }

void unpack_block_32(DType dtype, const BlockColumn& from, uint8_t* block) {
  uint8_t* p = block;
  std::memcpy(p, from.scale(), 2);
  p += 2;
  if (dtype == DType::q4_1 || dtype == DType::q5_1) {
    std::memcpy(p, from.min(), 2);
    p += 2;
  }
  if (dtype == DType::q5_0 || dtype == DType::q5_1) {
    for (int64_t i = 0; i < 32; ++i) set_bits(p[i >> 3], i & 7, from.fifth(i));
    p += 4;
  }
  for (int64_t i = 0; i < 32; ++i) {
    if (dtype == DType::q8_0)
      p[i] = from.byte_code(i);
    else
      set_bits(p[i % 16], i < 16 ? 0 : 4, from.nibble(i));
  }
}

void unpack_block_k45(DType dtype, const BlockColumn& from, uint8_t* block) {
  std::memcpy(block, from.min(0), 2);
  std::memcpy(block + 2, from.min(1), 2);
  uint8_t* q = block + 4;
  for (int64_t j = 0; j < 4; ++j) {
    q[j] = static_cast<uint8_t>(from.six(j, 0) | (from.six(j + 4, 0) >> 4) << 6);
    q[j + 4] = static_cast<uint8_t>(from.six(j, 1) | (from.six(j + 4, 1) >> 4) << 6);
    q[j + 8] = static_cast<uint8_t>((from.six(j + 4, 0) & 15u) | (from.six(j + 4, 1) & 15u) << 4);
  }
  uint8_t* qs = block + 16;
  if (dtype == DType::q5_k) {
    for (int64_t i = 0; i < 256; ++i) set_bits(qs[i % 32], i / 32, from.fifth(i));
    qs += 32;
  }
  for (int64_t i = 0; i < 256; ++i) set_bits(qs[32 * (i / 64) + i % 32], i % 64 < 32 ? 0 : 4, from.nibble(i));
}

void unpack_block_k6(const BlockColumn& from, uint8_t* block) {
  std::memcpy(block + 208, from.min(), 2);
  for (int64_t g = 0; g < 16; ++g) block[192 + g] = from.byte_scale(g);
  for (int64_t i = 0; i < 256; ++i) {
    const int64_t half = i / 128;
    const int64_t p = (i % 128) / 32;
    set_bits(block[64 * half + 32 * (p & 1) + i % 32], p < 2 ? 0 : 4, from.nibble(i));
    set_bits(block[128 + 32 * half + i % 32], 2 * p, from.two_bits(i));
  }
}

void unpack_block(DType dtype, const BlockColumn& from, uint8_t* block) {
  switch (dtype) {
    case DType::q4_k:
    case DType::q5_k:
      return unpack_block_k45(dtype, from, block);
    case DType::q6_k:
      return unpack_block_k6(from, block);
    default:
      return unpack_block_32(dtype, from, block);
  }
}

void unpack_halves(const std::byte* strip, int64_t c, int64_t cols, std::byte* row) {
  for (int64_t k = 0; k < cols; ++k) {
    const int64_t in_pair = (k | 1) < cols ? 4 * c + 2 * (k & 1) : 2 * c;
    std::memcpy(row + 2 * k, strip + 128 * (k >> 1) + in_pair, 2);
  }
}

}  // namespace

bool has_strips(DType dtype) noexcept { return area_bytes(dtype).inputs != 0; }

StripLayout strip_layout(DType dtype, int64_t cols) {
  const AreaBytes area = area_bytes(dtype);
  KZ_CHECK(area.inputs != 0 && cols % area.inputs == 0);
  return {cols / area.inputs, area.codes, area.high, area.scales, area.mins};
}

int64_t strips_bytes(DType dtype, int64_t rows, int64_t cols) {
  return (rows + kStripRows - 1) / kStripRows * strip_layout(dtype, cols).stride_bytes();
}

void unpack_strip_block(DType dtype, const StripLayout& layout, const std::byte* strip, int64_t c, int64_t b,
                        std::byte* block) {
  KZ_CHECK(c >= 0 && c < kStripRows && b >= 0 && b < layout.n_blocks);
  std::memset(block, 0, static_cast<size_t>(dtype_info(dtype).block_bytes));
  unpack_block(dtype, BlockColumn(layout, strip, b, c), reinterpret_cast<uint8_t*>(block));
}

void unpack_strip_row(DType dtype, const std::byte* strip, int64_t c, int64_t cols, std::byte* row) {
  const DTypeInfo& info = dtype_info(dtype);
  if (info.block_elements == 1) return unpack_halves(strip, c, cols, row);
  const StripLayout layout = strip_layout(dtype, cols);
  for (int64_t b = 0; b < layout.n_blocks; ++b) {
    unpack_strip_block(dtype, layout, strip, c, b, row + b * info.block_bytes);
  }
}

}  // namespace kz
