// Products on strips, written once and compiled once per instruction set. Part of the strip kernel template.
//
// A table supplies a struct Isa with
//
//   Bytes, Ints, Floats       vectors of kColumns * 4 bytes, kColumns int32, kColumns float
//   kColumns                  columns of a strip in one vector: 16 (AVX-512), 8 (AVX2), 4 (NEON), 1 (scalar)
//   kFewRows, kFewSums        most rows that meet a strip as it lies; integer sums in flight there
//   kFewStrips                strips that they meet side by side: 1 or 2
//   kBatchRows, kBatchGroups  register tile of more rows: rows x vectors of columns (0 rows: there is none)
//   kChunkTiles               tiles of 32 inputs that are unpacked at a time for them, even: what the first cache holds
//   kSignedZero               what dot_signed adds to every weight (128 where the unit takes unsigned weights only)
//   bytes(p), splat4(p)       load; four activation codes in every group of four bytes
//   low, high                 nibbles of each byte
//   up<n>, down<n>            each byte shifted (what crosses into the neighbour byte is masked by the caller)
//   mask(v, byte), either, table16
//   ints(x), dot(sum, unsigned weights, codes), dot_signed
//   floats(x), half(p), int8(p), nibble(p), convert, mul, fma
//   unpacked(zero, signed, min)  how weights lie in an unpacked tile, see Unpacked
//
// and results are the same bits for every table: block sums are exact integers, and the float step is
//   sum <- fma(float(block sum), d * dx, sum), then for types with a minimum sum <- fma(m, dx * float(sum of codes),
//   sum)
// in ascending block order with one sum per output.
#pragma once

#include "cpu/template/strip_batch.h"
#include "cpu/template/strip_few.h"

namespace kz {
namespace {

template <class Isa, class Type>
void strip_product(const StripProductArgs& args) {
  for (int64_t s = 0; s < args.n_strips; ++s) {
    const std::byte* strip = args.strips + s * args.stride_bytes;
    float* out = args.out + 32 * s;
    if constexpr (Isa::kBatchRows > 0) {
      if (args.n_rows > Isa::kFewRows) {
        batch_strip<Isa, Type>(args, strip, out);
        continue;
      }
    }
    if constexpr (Isa::kFewStrips == 2) {
      if (s + 1 < args.n_strips) {
        few_strip<Isa, Type, 2>(args, strip, out);
        ++s;
        continue;
      }
    }
    few_strip<Isa, Type, 1>(args, strip, out);
  }
}

/// Product<Type>::run(args) of the block type.
template <template <class> class Product>
void product_with(const StripProductArgs& args) {
  switch (args.gguf_type) {
    case Q4_0::kId:
      return Product<Q4_0>::run(args);
    case Q4_1::kId:
      return Product<Q4_1>::run(args);
    case Q5_0::kId:
      return Product<Q5_0>::run(args);
    case Q5_1::kId:
      return Product<Q5_1>::run(args);
    case Q8_0::kId:
      return Product<Q8_0>::run(args);
    case Q4_K::kId:
      return Product<Q4_K>::run(args);
    case Q5_K::kId:
      return Product<Q5_K>::run(args);
    case Q6_K::kId:
      return Product<Q6_K>::run(args);
    case IQ4_NL::kId:
      return Product<IQ4_NL>::run(args);
    default:
      return;
  }
}

template <class Isa>
struct StripProduct {
  template <class Type>
  struct Of {
    static void run(const StripProductArgs& args) { strip_product<Isa, Type>(args); }
  };
};

template <class Isa>
void product_of_type(const StripProductArgs& args) {
  product_with<StripProduct<Isa>::template Of>(args);
}

inline bool knows_strip_type(int32_t id) {
  return id == Q4_0::kId || id == Q4_1::kId || id == Q5_0::kId || id == Q5_1::kId || id == Q8_0::kId ||
         id == Q4_K::kId || id == Q5_K::kId || id == Q6_K::kId || id == IQ4_NL::kId;
}

}  // namespace
}  // namespace kz
