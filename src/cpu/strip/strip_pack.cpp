// File rows -> strips, four weights at a time: a strip keeps the four inputs of a column in four neighbouring bytes.
#include <bit>
#include <cstring>

#include "core/error.h"
#include "cpu/strip/strip.h"

namespace kz {
namespace {

static_assert(std::endian::native == std::endian::little, "blocks of a file are little-endian");

constexpr uint32_t kLow = 0x0f0f0f0fu;

uint32_t load(const uint8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

/// Swaps the middle two bytes: the order 0, 2, 1, 3 of a strip.
uint32_t strip_order(uint32_t v) { return (v & 0xff0000ffu) | ((v >> 8) & 0xff00u) | ((v << 8) & 0xff0000u); }

/// Column c of one block of a strip.
struct Target {
  uint8_t *codes, *high, *scales, *mins;
  int64_t c;

  void put(uint8_t* line, uint32_t four) const {
    four = strip_order(four);
    std::memcpy(line + 4 * c, &four, 4);
  }
  /// Inputs 8 line .. 8 line + 7 of tile `tile`: four codes 0..15 below, four above.
  void nibbles(int64_t tile, int64_t line, uint32_t lower, uint32_t upper) const {
    put(codes + 512 * tile + 128 * line, lower | upper << 4);
  }
  void scale(const uint8_t* d) const { std::memcpy(scales + 2 * c, d, 2); }
  void min(const uint8_t* m, int64_t second = 0) const { std::memcpy(mins + 64 * second + 2 * c, m, 2); }
};

/// Nibbles of a 32-element block: byte j holds inputs j and j + 16.
void pack_nibbles_32(const uint8_t* qs, const Target& to) {
  for (int64_t half = 0; half < 2; ++half) {
    const uint32_t a = load(qs + 8 * half);
    const uint32_t b = load(qs + 8 * half + 4);
    to.nibbles(0, half, a & kLow, b & kLow);
    to.nibbles(0, half + 2, (a >> 4) & kLow, (b >> 4) & kLow);
  }
}

/// Bits 0..3 of n, one in each byte.
uint32_t spread_bits(uint32_t n) { return (n & 1u) | (n & 2u) << 7 | (n & 4u) << 14 | (n & 8u) << 21; }

void pack_fifth_bits_32(const uint8_t* qh, const Target& to) {
  const uint32_t bits = load(qh);
  uint32_t plane = 0;
  for (uint32_t quad = 0; quad < 8; ++quad) plane |= spread_bits(bits >> (4 * quad)) << quad;
  to.put(to.high, plane);
}

void pack_block_32(DType dtype, const uint8_t* block, const Target& to) {
  const uint8_t* p = block;
  to.scale(p);
  p += 2;
  if (dtype == DType::q4_1 || dtype == DType::q5_1) {
    to.min(p);
    p += 2;
  }
  if (dtype == DType::q5_0 || dtype == DType::q5_1) {
    pack_fifth_bits_32(p, to);
    p += 4;
  }
  if (dtype == DType::q8_0) {
    for (int64_t quad = 0; quad < 8; ++quad) to.put(to.codes + 128 * quad, load(p + 4 * quad));
  } else {
    pack_nibbles_32(p, to);
  }
}

/// Nibbles of a 256-element block: 32 bytes hold one tile below and the next one above.
void pack_nibbles_256(const uint8_t* qs, const Target& to) {
  for (int64_t pair = 0; pair < 4; ++pair) {
    for (int64_t line = 0; line < 4; ++line) {
      const uint32_t a = load(qs + 32 * pair + 8 * line);
      const uint32_t b = load(qs + 32 * pair + 8 * line + 4);
      to.nibbles(2 * pair, line, a & kLow, b & kLow);
      to.nibbles(2 * pair + 1, line, (a >> 4) & kLow, (b >> 4) & kLow);
    }
  }
}

void pack_fifth_bits_256(const uint8_t* qh, const Target& to) {
  for (int64_t tile = 0; tile < 8; ++tile) {
    uint32_t plane = 0;
    for (int64_t quad = 0; quad < 8; ++quad) plane |= ((load(qh + 4 * quad) >> tile) & 0x01010101u) << quad;
    to.put(to.high + 128 * tile, plane);
  }
}

/// The six-bit scale (which = 0) or min (1) of sub-block j in its planes.
void put_six(const Target& to, int64_t j, int64_t which, uint32_t value) {
  uint8_t& low = to.scales[128 * which + 32 * (j & 3) + to.c];
  uint8_t& high = to.scales[256 + 64 * which + 32 * (j >> 2) + to.c];
  low = static_cast<uint8_t>(low | (value & 15u) << (j < 4 ? 0 : 4));
  high = static_cast<uint8_t>(high | (value >> 4) << (2 * (j & 3)));
}

void pack_block_k45(DType dtype, const uint8_t* block, const Target& to) {
  to.min(block, 0);
  to.min(block + 2, 1);
  const uint8_t* q = block + 4;
  for (int64_t j = 0; j < 4; ++j) {
    put_six(to, j, 0, q[j] & 63u);
    put_six(to, j, 1, q[j + 4] & 63u);
    put_six(to, j + 4, 0, (q[j + 8] & 15u) | static_cast<uint32_t>(q[j] >> 6) << 4);
    put_six(to, j + 4, 1, static_cast<uint32_t>(q[j + 8] >> 4) | static_cast<uint32_t>(q[j + 4] >> 6) << 4);
  }
  if (dtype == DType::q5_k) pack_fifth_bits_256(block + 16, to);
  pack_nibbles_256(block + (dtype == DType::q5_k ? 48 : 16), to);
}

void pack_block_k6(const uint8_t* block, const Target& to) {
  to.min(block + 208);
  for (int64_t g = 0; g < 16; ++g) to.scales[32 * g + to.c] = block[192 + g];
  for (int64_t tile = 0; tile < 8; ++tile) {
    const int64_t half = tile / 4, p = tile % 4;
    const uint8_t* low = block + 64 * half + 32 * (p & 1);
    for (int64_t line = 0; line < 4; ++line) {
      const int64_t shift = p < 2 ? 0 : 4;
      to.nibbles(tile, line, (load(low + 8 * line) >> shift) & kLow, (load(low + 8 * line + 4) >> shift) & kLow);
    }
    for (int64_t line = 0; line < 2; ++line) {
      uint32_t plane = 0;
      for (int64_t quad = 0; quad < 4; ++quad) {
        plane |= ((load(block + 128 + 32 * half + 16 * line + 4 * quad) >> (2 * p)) & 0x03030303u) << (2 * quad);
      }
      to.put(to.high + 256 * tile + 128 * line, plane);
    }
  }
}

void pack_block(DType dtype, const uint8_t* block, const Target& to) {
  switch (dtype) {
    case DType::q4_k:
    case DType::q5_k:
      return pack_block_k45(dtype, block, to);
    case DType::q6_k:
      return pack_block_k6(block, to);
    default:
      return pack_block_32(dtype, block, to);
  }
}

/// A pair of 16-bit inputs shares the four bytes of its column; an odd last input stands alone.
void pack_halves(const uint8_t* row, uint8_t* strip, int64_t c, int64_t cols) {
  for (int64_t k = 0; k + 1 < cols; k += 2) std::memcpy(strip + 64 * k + 4 * c, row + 2 * k, 4);
  if (cols % 2 != 0) std::memcpy(strip + 64 * (cols - 1) + 2 * c, row + 2 * (cols - 1), 2);
}

}  // namespace

void pack_strip(DType dtype, const std::byte* rows, int64_t n_rows, int64_t cols, std::byte* strip) {
  KZ_CHECK(n_rows >= 1 && n_rows <= kStripRows);
  const StripLayout layout = strip_layout(dtype, cols);
  const DTypeInfo& info = dtype_info(dtype);
  const int64_t bytes = row_bytes(dtype, cols);
  const auto* from = reinterpret_cast<const uint8_t*>(rows);
  auto* to = reinterpret_cast<uint8_t*>(strip);
  std::memset(strip, 0, static_cast<size_t>(layout.stride_bytes()));
  if (info.block_elements == 1) {
    for (int64_t c = 0; c < n_rows; ++c) pack_halves(from + c * bytes, to, c, cols);
    return;
  }
  // Block by block over all columns: the part of the strip in work stays in the first cache.
  for (int64_t b = 0; b < layout.n_blocks; ++b) {
    Target target{to + layout.codes(b), to + layout.high(b), to + layout.scales(b), to + layout.mins(b), 0};
    for (; target.c < n_rows; ++target.c) pack_block(dtype, from + target.c * bytes + b * info.block_bytes, target);
  }
}

}  // namespace kz
