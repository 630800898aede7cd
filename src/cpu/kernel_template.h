// The kernels, written once with vectors of any width and compiled once per instruction set.
//
// A kernel file includes this header and intrinsics, nothing else, defines a Shape and exports one constant:
//
//   struct Shape {
//     static constexpr int kWidth = 16;        // floats in a vector of the machine: 4, 8 or 16
//     static constexpr int kTileWeights = 4;   // register tile of product(): weight rows ...
//     static constexpr int kTileRows = 4;      // ... times rows of x (at most kMostTileRows)
//     static constexpr int kSumRows = 4;       // register tile of weighted_sum(): rows ...
//     static constexpr int kSumVectors = 4;    // ... times 16 values each
//     static constexpr int kDeltaRows = 8;     // state rows that delta() has in flight
//     // Register tile of stored_scores() and stored_mix():
//     static constexpr int kStoredQueries = 4; // queries (1, 2 or 4) ...
//     static constexpr int kStoredKeys = 4;    // ... times keys (1, 2 or 4)
//     static constexpr int kStoredBlocks = 2;  // ... times 32 values each
//   };
//   (and may bring instructions: see cpu/template/stored_product.h and stored_rows.h)
//   constexpr Kernels kTable = make_kernels<Shape>("name");
//
// The shape decides speed only: results are the same bits for every shape.
#pragma once

#include "cpu/kernels.h"
#include "cpu/template/delta.h"
#include "cpu/template/dequantise.h"
#include "cpu/template/product.h"
#include "cpu/template/rows.h"
#include "cpu/template/stored_product.h"
#include "cpu/template/stored_rows.h"
#include "cpu/template/vector.h"

namespace kz {
namespace {

template <class Shape>
constexpr Kernels make_kernels(const char* name) {
  constexpr int kWidth = Shape::kWidth;
  Kernels t{};
  t.name = name;
  t.dequantise = dequantise_kv<Shape>;
  t.product = product<Shape>;
  t.stored_product = stored_product<Shape>;
  t.weighted_sum = weighted_sum<Shape>;
  t.stored_scores = stored_scores<Shape>;
  t.stored_mix = stored_mix<Shape>;
  t.softmax = softmax<kWidth>;
  t.merge = merge<kWidth>;
  t.divide = divide<kWidth>;
  t.delta = delta<Shape>;
  t.conv_silu = conv_silu<kWidth>;
  t.transpose_taps = transpose_taps;
  t.dot = dot<kWidth>;
  t.exponential = exponential<kWidth>;
  t.sigmoid = sigmoid<kWidth>;
  t.sum_of_squares = sum_of_squares<kWidth>;
  t.scale = scale_row<kWidth>;
  t.scale_silu_gate = scale_silu_gate<kWidth>;
  t.swiglu = swiglu<kWidth>;
  t.sigmoid_gate = sigmoid_gate<kWidth>;
  t.add = add<kWidth>;
  t.rotate = rotate<kWidth>;
  return t;
}

}  // namespace
}  // namespace kz
