// Weight rows times activation rows, and weighted sums of rows. Part of the kernel template (see vector.h).
#pragma once

#include "cpu/template/vector.h"

namespace kz {
namespace {

/// kW weight rows against kR rows of x: one set of lanes per output, kept in registers over `k` columns.
template <int kWidth, int kW, int kR>
struct ProductTile {
  using L = Lanes<kWidth>;
  using F = typename L::F;
  F sum[kW][kR];

  KZ_INLINE void clear() {
    for (int w = 0; w < kW; ++w) {
      for (int r = 0; r < kR; ++r) sum[w][r] = F{};
    }
  }
  KZ_INLINE void load(const float* lanes) {
    for (int w = 0; w < kW; ++w) {
      for (int r = 0; r < kR; ++r) sum[w][r] = L::load(lanes + (w * kR + r) * kLanes);
    }
  }
  KZ_INLINE void store(float* lanes) const {
    for (int w = 0; w < kW; ++w) {
      for (int r = 0; r < kR; ++r) L::store(lanes + (w * kR + r) * kLanes, sum[w][r]);
    }
  }
  KZ_INLINE void add_up(float (&sums)[kR][kW]) const {
    if constexpr ((kW & (kW - 1)) == 0) {
      for (int r = 0; r < kR; ++r) {
        F row[kW];
        for (int w = 0; w < kW; ++w) row[w] = sum[w][r];
        tree_sums(row, sums[r]);
      }
    } else {
      for (int r = 0; r < kR; ++r) {
        for (int w = 0; w < kW; ++w) sums[r][w] = tree_sum(sum[w][r]);
      }
    }
  }
  KZ_INLINE void step(const F (&weight)[kW], const F (&x)[kR]) {
    for (int w = 0; w < kW; ++w) {
      for (int r = 0; r < kR; ++r) sum[w][r] = sum[w][r] + weight[w] * x[r];
    }
  }
  KZ_INLINE void walk(const float* weights, int64_t weight_stride, const float* x, int64_t x_stride, int64_t k) {
    F weight[kW], input[kR];
    int64_t at = 0;
    for (; at + kLanes <= k; at += kLanes) {
      for (int r = 0; r < kR; ++r) input[r] = L::load(x + r * x_stride + at);
      for (int w = 0; w < kW; ++w) weight[w] = L::load(weights + w * weight_stride + at);
      step(weight, input);
    }
    if (at < k) {
      for (int r = 0; r < kR; ++r) input[r] = L::load_part(x + r * x_stride + at, k - at);
      for (int w = 0; w < kW; ++w) weight[w] = L::load_part(weights + w * weight_stride + at, k - at);
      step(weight, input);
    }
  }
};

/// One tile over columns [begin, end) of the rows; its lanes wait in `lanes` between the parts of a long row.
template <int kWidth, int kW, int kR>
void product_tile(const ProductArgs& a, int64_t first_weight, int64_t first_row, int64_t begin, int64_t end) {
  float* lanes = a.k > kProductColumns ? a.lanes + first_weight * kMostTileRows * kLanes : nullptr;
  ProductTile<kWidth, kW, kR> tile;
  if (begin == 0) {
    tile.clear();
  } else {
    tile.load(lanes);
  }
  tile.walk(a.weights + first_weight * a.weight_stride + begin, a.weight_stride, a.x + first_row * a.x_stride + begin,
            a.x_stride, end - begin);
  if (end < a.k) {
    tile.store(lanes);
    return;
  }
  float sums[kR][kW];
  tile.add_up(sums);
  for (int r = 0; r < kR; ++r) {
    float* out = a.out + (first_row + r) * a.out_stride + first_weight;
    for (int w = 0; w < kW; ++w) out[w] = a.bias == nullptr ? sums[r][w] : sums[r][w] + a.bias[first_weight + w];
  }
}

/// All weight rows against kR rows of x, tiles of kW and then of single rows.
template <int kWidth, int kW, int kR>
void product_rows(const ProductArgs& a, int64_t first_row) {
  int64_t begin = 0;
  do {
    const int64_t end = a.k - begin > kProductColumns ? begin + kProductColumns : a.k;
    int64_t w = 0;
    for (; w + kW <= a.n_weights; w += kW) product_tile<kWidth, kW, kR>(a, w, first_row, begin, end);
    for (; w < a.n_weights; ++w) product_tile<kWidth, 1, kR>(a, w, first_row, begin, end);
    begin = end;
  } while (begin < a.k);
}

/// Tiles of Shape::kTileWeights x Shape::kTileRows; what remains of the rows goes in ones (and twos and threes).
template <class Shape>
void product(const ProductArgs& a) {
  static_assert(Shape::kTileRows <= kMostTileRows);
  constexpr int kW = Shape::kTileWeights, kR = Shape::kTileRows;
  int64_t row = 0;
  for (; row + kR <= a.n_rows; row += kR) product_rows<Shape::kWidth, kW, kR>(a, row);
  if constexpr (kR > 3) {
    if (a.n_rows - row == 3) return product_rows<Shape::kWidth, kW, 3>(a, row);
  }
  if constexpr (kR > 2) {
    if (a.n_rows - row == 2) return product_rows<Shape::kWidth, kW, 2>(a, row);
  }
  for (; row < a.n_rows; ++row) product_rows<Shape::kWidth, kW, 1>(a, row);
}

/// kR rows of weights, kJ x 16 values wide, in registers over all n rows of values.
template <int kWidth, int kR, int kJ>
KZ_INLINE void weighted_tile(const WeightedSumArgs& a, int64_t row, int64_t j) {
  using L = Lanes<kWidth>;
  typename L::F sum[kR][kJ];
  const float* weights = a.weights + row * a.weight_stride;
  float* out = a.out + row * a.out_stride + j;
  for (int r = 0; r < kR; ++r) {
    for (int c = 0; c < kJ; ++c) sum[r][c] = L::load(out + r * a.out_stride + c * kLanes);
  }
  const float* values = a.values + j;
  for (int64_t u = 0; u < a.n; ++u, values += a.value_stride) {
    typename L::F value[kJ];
    for (int c = 0; c < kJ; ++c) value[c] = L::load(values + c * kLanes);
    for (int r = 0; r < kR; ++r) {
      const typename L::F weight = L::splat(weights[r * a.weight_stride + u]);
      for (int c = 0; c < kJ; ++c) sum[r][c] = sum[r][c] + weight * value[c];
    }
  }
  for (int r = 0; r < kR; ++r) {
    for (int c = 0; c < kJ; ++c) L::store(out + r * a.out_stride + c * kLanes, sum[r][c]);
  }
}

template <int kWidth, int kR, int kJ>
void weighted_rows(const WeightedSumArgs& a, int64_t row) {
  int64_t j = 0;
  for (; j + kJ * kLanes <= a.dim; j += kJ * kLanes) weighted_tile<kWidth, kR, kJ>(a, row, j);
  for (; j + kLanes <= a.dim; j += kLanes) weighted_tile<kWidth, kR, 1>(a, row, j);
  for (; j < a.dim; ++j) {
    for (int r = 0; r < kR; ++r) {
      float sum = a.out[(row + r) * a.out_stride + j];
      const float* weights = a.weights + (row + r) * a.weight_stride;
      for (int64_t u = 0; u < a.n; ++u) sum = sum + weights[u] * a.values[u * a.value_stride + j];
      a.out[(row + r) * a.out_stride + j] = sum;
    }
  }
}

template <class Shape>
void weighted_sum(const WeightedSumArgs& a) {
  constexpr int kR = Shape::kSumRows, kJ = Shape::kSumVectors;
  int64_t row = 0;
  for (; row + kR <= a.n_rows; row += kR) weighted_rows<Shape::kWidth, kR, kJ>(a, row);
  for (; row < a.n_rows; ++row) weighted_rows<Shape::kWidth, 1, kJ>(a, row);
}

}  // namespace
}  // namespace kz
