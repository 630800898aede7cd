// File blocks -> strips, four columns and four inputs at a time: four rows of sixteen bytes are turned as a 4 x 4
// matrix of 32-bit words, which puts the four inputs of a column into four neighbouring bytes.
//
// Vectors of 16 bytes that every target has; no instruction set of its own is asked for, because packing keeps up
// with the memory as it is (docs/decisions/loading.md). The order of a strip's bytes: cpu/strip/strip.h.
#pragma once

#include <cstdint>

namespace kz {
namespace {

typedef uint32_t Words __attribute__((vector_size(16)));

constexpr uint32_t kLowNibbles = 0x0f0f0f0fu;

/// One block of 32 columns: block of column c at base + c * stride; areas of the strip that take it.
struct PackBlock {
  const uint8_t* base;
  int64_t stride;
  uint8_t *codes, *high, *scales, *mins;
};

inline Words load_words(const uint8_t* p) {
  Words v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

inline void store_words(uint8_t* p, Words v) { __builtin_memcpy(p, &v, sizeof(v)); }

inline uint32_t load_word(const uint8_t* p) {
  uint32_t v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}

/// Swaps bits `mask << shift` of each word with bits `mask`.
inline Words swap_bits(Words v, int shift, uint32_t mask) {
  const Words t = ((v >> shift) ^ v) & mask;
  return v ^ t ^ (t << shift);
}

/// The order 0, 2, 1, 3 of the bytes of a column.
inline Words strip_order(Words v) { return swap_bits(v, 8, 0x0000ff00u); }

/// Words 0..3 of the 16 bytes at p of four columns: word i of all four in w[i].
inline void load_turned(const uint8_t* p, int64_t stride, Words (&w)[4]) {
  const Words a = load_words(p), b = load_words(p + stride);
  const Words c = load_words(p + 2 * stride), d = load_words(p + 3 * stride);
  const Words ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Words cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  w[0] = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
  w[1] = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
  w[2] = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
  w[3] = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

/// 16 bytes of nibbles of four columns. Words 0 and 1 become a line of their low nibbles at `low` and of their high
/// nibbles at `high`; words 2 and 3 become the lines `next` bytes behind.
inline void pack_nibbles(const uint8_t* p, int64_t stride, uint8_t* low, uint8_t* high, int64_t next) {
  Words w[4];
  load_turned(p, stride, w);
  for (int pair = 0; pair < 2; ++pair) {
    const Words a = strip_order(w[2 * pair]), b = strip_order(w[2 * pair + 1]);
    store_words(low + pair * next, (a & kLowNibbles) | ((b & kLowNibbles) << 4));
    store_words(high + pair * next, ((a >> 4) & kLowNibbles) | (b & ~kLowNibbles));
  }
}

/// A fp16 value of every column, `offset` bytes into its block.
inline void pack_halves_of(const PackBlock& b, int64_t offset, uint8_t* to) {
  for (int64_t c = 0; c < 32; ++c) __builtin_memcpy(to + 2 * c, b.base + c * b.stride + offset, 2);
}

/// Bit 4 q + j of a word -> bit q of byte P(j): a rotation of the five bits of its index, then the order of a strip.
inline Words plane_of_bits(Words v) {
  v = swap_bits(v, 3, 0x0a0a0a0au);
  v = swap_bits(v, 6, 0x00cc00ccu);
  v = swap_bits(v, 12, 0x0000f0f0u);
  return v;
}

/// Codes of a 32-element type of four bits, which start `offset` bytes into a block: byte j holds inputs j and j + 16.
inline void pack_codes_4(const PackBlock& b, int64_t offset) {
  for (int64_t c = 0; c < 32; c += 4) {
    uint8_t* to = b.codes + 4 * c;
    pack_nibbles(b.base + c * b.stride + offset, b.stride, to, to + 256, 128);
  }
}

inline void pack_codes_8(const PackBlock& b, int64_t offset) {
  for (int64_t c = 0; c < 32; c += 4) {
    for (int64_t half = 0; half < 2; ++half) {
      Words w[4];
      load_turned(b.base + c * b.stride + offset + 16 * half, b.stride, w);
      for (int64_t i = 0; i < 4; ++i) store_words(b.codes + 128 * (4 * half + i) + 4 * c, strip_order(w[i]));
    }
  }
}

/// Fifth bits of a 32-element type: bit k of a word is input k.
inline void pack_fifth_32(const PackBlock& b, int64_t offset) {
  for (int64_t c = 0; c < 32; c += 4) {
    const uint8_t* p = b.base + c * b.stride + offset;
    const Words bits = {load_word(p), load_word(p + b.stride), load_word(p + 2 * b.stride),
                        load_word(p + 3 * b.stride)};
    store_words(b.high + 4 * c, plane_of_bits(bits));
  }
}

/// 32 bytes of nibbles of a 256-element type: one tile below, one above.
inline void pack_tiles_4(const PackBlock& b, int64_t offset, int64_t low_tile, int64_t high_tile) {
  for (int64_t c = 0; c < 32; c += 4) {
    for (int64_t half = 0; half < 2; ++half) {
      uint8_t* to = b.codes + 256 * half + 4 * c;
      pack_nibbles(b.base + c * b.stride + offset + 16 * half, b.stride, to + 512 * low_tile, to + 512 * high_tile,
                   128);
    }
  }
}

/// Fifth bits of Q5_K: bit t of byte k is input k of tile t.
inline void pack_fifth_256(const PackBlock& b, int64_t offset) {
  for (int64_t c = 0; c < 32; c += 4) {
    Words w[8];
    Words(&first)[4] = *reinterpret_cast<Words(*)[4]>(w);
    Words(&second)[4] = *reinterpret_cast<Words(*)[4]>(w + 4);
    load_turned(b.base + c * b.stride + offset, b.stride, first);
    load_turned(b.base + c * b.stride + offset + 16, b.stride, second);
    for (int tile = 0; tile < 8; ++tile) {
      Words plane{};
      for (int quad = 0; quad < 8; ++quad) plane |= ((w[quad] >> tile) & 0x01010101u) << quad;
      store_words(b.high + 128 * tile + 4 * c, strip_order(plane));
    }
  }
}

/// Fifth and sixth bits of Q6_K: 16 bytes hold inputs 16 line .. 16 line + 15 of four tiles, two bits each.
inline void pack_sixth(const PackBlock& b, int64_t offset) {
  for (int64_t c = 0; c < 32; c += 4) {
    for (int64_t part = 0; part < 4; ++part) {  // two halves of 128 inputs, two lines each
      Words w[4];
      load_turned(b.base + c * b.stride + offset + 16 * part, b.stride, w);
      for (int p = 0; p < 4; ++p) {
        Words plane{};
        for (int quad = 0; quad < 4; ++quad) plane |= ((w[quad] >> (2 * p)) & 0x03030303u) << (2 * quad);
        store_words(b.high + 1024 * (part / 2) + 256 * p + 128 * (part % 2) + 4 * c, strip_order(plane));
      }
    }
  }
}

/// The four bytes of a word to the same column of four planes.
inline void put_bytes(uint8_t* planes, uint32_t word) {
  for (int j = 0; j < 4; ++j) planes[32 * j] = static_cast<uint8_t>(word >> (8 * j));
}

/// Two bits of each byte, together in one: those of byte j at 2 j.
inline uint8_t two_bits_of_bytes(uint32_t word) {
  word &= 0x03030303u;
  return static_cast<uint8_t>(word | word >> 6 | word >> 12 | word >> 18);
}

/// The twelve bytes of six-bit scales and mins of Q4_K and Q5_K.
inline void pack_scales_6(const PackBlock& b, int64_t offset) {
  for (int64_t c = 0; c < 32; ++c) {
    const uint8_t* q = b.base + c * b.stride + offset;
    const uint32_t scales = load_word(q), mins = load_word(q + 4), upper = load_word(q + 8);
    put_bytes(b.scales + c, (scales & kLowNibbles) | (upper & kLowNibbles) << 4);
    put_bytes(b.scales + 128 + c, (mins & kLowNibbles) | (upper & ~kLowNibbles));
    b.scales[256 + c] = two_bits_of_bytes(scales >> 4);
    b.scales[288 + c] = two_bits_of_bytes(scales >> 6);
    b.scales[320 + c] = two_bits_of_bytes(mins >> 4);
    b.scales[352 + c] = two_bits_of_bytes(mins >> 6);
  }
}

/// The sixteen int8 scales of Q6_K.
inline void pack_scales_8(const PackBlock& b, int64_t offset) {
  for (int64_t c = 0; c < 32; ++c) {
    for (int64_t g = 0; g < 16; ++g) b.scales[32 * g + c] = b.base[c * b.stride + offset + g];
  }
}

}  // namespace
}  // namespace kz
