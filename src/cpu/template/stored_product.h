// Float weights as they lie in a file (F32, F16, BF16) times few rows of activations: converted in registers, one sweep
// over memory. Part of the kernel template (see vector.h).
//
// A Shape may bring
//
//   static Native<float, kWidth>::Type halves(const void* p)   kWidth fp16 values as floats, by an instruction
#pragma once

#include "cpu/template/dequantise.h"
#include "cpu/template/vector.h"

namespace kz {
namespace {

/// Sixteen fp16 values with the instruction of a shape.
template <class Shape, class V>
struct ConvertedHalves {
  KZ_INLINE static V load(const std::byte* p) { return Shape::halves(p); }
};
template <class Shape, class V>
struct ConvertedHalves<Shape, Pair<V>> {
  KZ_INLINE static Pair<V> load(const std::byte* p) {
    return {ConvertedHalves<Shape, V>::load(p), ConvertedHalves<Shape, V>::load(p + 2 * Ops<V>::kCount)};
  }
};

template <class Shape>
struct StoredF32 {
  static constexpr int64_t kBytes = 4;
  KZ_INLINE static typename Lanes<Shape::kWidth>::F load(const std::byte* p) {
    return Ops<typename Lanes<Shape::kWidth>::F>::load(p);
  }
};

template <class Shape>
struct StoredF16 {
  static constexpr int64_t kBytes = 2;
  KZ_INLINE static typename Lanes<Shape::kWidth>::F load(const std::byte* p) {
    if constexpr (requires { Shape::halves(p); })
      return ConvertedHalves<Shape, typename Lanes<Shape::kWidth>::F>::load(p);
    else
      return halves_to_f32<Shape::kWidth>(p);
  }
};

template <class Shape>
struct StoredBf16 {
  static constexpr int64_t kBytes = 2;
  KZ_INLINE static typename Lanes<Shape::kWidth>::F load(const std::byte* p) {
    using I = typename Lanes<Shape::kWidth>::I;
    using H = typename LanesOf<uint16_t, kLanes, Shape::kWidth>::Type;
    const I bits = Ops<I>::shift_left(Between<I, H>::value(Ops<H>::load(p)), 16);
    return Between<typename Lanes<Shape::kWidth>::F, I>::bits(bits);
  }
};

/// kW weight rows against kR rows of x over all columns: the lanes of class f32, as product() has them.
template <class Shape, class Stored, int kW, int kR>
KZ_INLINE void stored_tile(const StoredProductArgs& a, int64_t first_weight, int64_t first_row) {
  using L = Lanes<Shape::kWidth>;
  using F = typename L::F;
  constexpr int64_t kStep = kLanes * Stored::kBytes, kAheadBytes = 1024;
  const std::byte* weights = a.weights + first_weight * a.weight_stride_bytes;
  const float* x = a.x + first_row * a.x_stride;
  const int64_t row_bytes = a.k * Stored::kBytes;
  F sum[kW][kR];
  for (int w = 0; w < kW; ++w) {
    for (int r = 0; r < kR; ++r) sum[w][r] = F{};
  }
  const auto step = [&](const F(&weight)[kW], const F(&input)[kR]) {
    for (int w = 0; w < kW; ++w) {
      for (int r = 0; r < kR; ++r) sum[w][r] = sum[w][r] + weight[w] * input[r];
    }
  };
  F weight[kW], input[kR];
  int64_t at = 0;
  for (; at + kLanes <= a.k; at += kLanes) {
    const std::byte* p = weights + at * Stored::kBytes;
    // What follows the end of these rows is the row next to them; after the last one come the next kW rows.
    const bool inside = at * Stored::kBytes + kAheadBytes < row_bytes;
    const std::byte* ahead = p + kAheadBytes + (inside ? 0 : kW * a.weight_stride_bytes - row_bytes);
    if (first_row == 0 && (at * Stored::kBytes) % 64 < kStep) {
      for (int w = 0; w < kW; ++w) __builtin_prefetch(ahead + w * a.weight_stride_bytes, 0, 3);
    }
    for (int r = 0; r < kR; ++r) input[r] = L::load(x + r * a.x_stride + at);
    for (int w = 0; w < kW; ++w) weight[w] = Stored::load(p + w * a.weight_stride_bytes);
    step(weight, input);
  }
  if (at < a.k) {
    const int64_t left = a.k - at;
    for (int r = 0; r < kR; ++r) input[r] = L::load_part(x + r * a.x_stride + at, left);
    for (int w = 0; w < kW; ++w) {
      std::byte part[kStep] = {};
      __builtin_memcpy(part, weights + w * a.weight_stride_bytes + at * Stored::kBytes,
                       static_cast<size_t>(left * Stored::kBytes));
      weight[w] = Stored::load(part);
    }
    step(weight, input);
  }
  for (int w = 0; w < kW; ++w) {
    for (int r = 0; r < kR; ++r) {
      const float total = tree_sum(sum[w][r]);
      a.out[(first_row + r) * a.out_stride + first_weight + w] =
          a.bias == nullptr ? total : total + a.bias[first_weight + w];
    }
  }
}

/// All rows of x against kW weight rows; these come from memory once, then from the first cache.
template <class Shape, class Stored, int kW>
void stored_rows(const StoredProductArgs& a, int64_t weight) {
  constexpr int kR = Shape::kTileRows;
  int64_t row = 0;
  for (; row + kR <= a.n_rows; row += kR) stored_tile<Shape, Stored, kW, kR>(a, weight, row);
  for (; row < a.n_rows; ++row) stored_tile<Shape, Stored, kW, 1>(a, weight, row);
}

template <class Shape, class Stored>
void stored_product_of(const StoredProductArgs& a) {
  constexpr int kW = Shape::kTileWeights;
  int64_t w = 0;
  for (; w + kW <= a.n_weights; w += kW) stored_rows<Shape, Stored, kW>(a, w);
  for (; w < a.n_weights; ++w) stored_rows<Shape, Stored, 1>(a, w);
}

template <class Shape>
bool stored_product(const StoredProductArgs& a) {
  switch (a.gguf_type) {
    case 0:
      stored_product_of<Shape, StoredF32<Shape>>(a);
      return true;
    case 1:
      stored_product_of<Shape, StoredF16<Shape>>(a);
      return true;
    case 30:
      stored_product_of<Shape, StoredBf16<Shape>>(a);
      return true;
    default:
      return false;
  }
}

}  // namespace
}  // namespace kz
