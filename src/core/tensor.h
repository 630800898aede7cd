// A view of a block of numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace kz {

/// A view: where the numbers are, their type, shape and strides. Owns nothing.
///
/// Shapes are written as in GGUF: ne[0] is contiguous. Activations are F32 {features, rows} or, seen per head,
/// {head_dim, heads, rows}. A weight matrix {cols, rows} maps cols inputs to rows outputs.
struct Tensor {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  std::array<int64_t, 4> ne{0, 1, 1, 1};
  std::array<int64_t, 4> stride{0, 0, 0, 0};  ///< bytes between neighbours along each dimension ([0]: one block)

  bool empty() const { return data == nullptr; }
  int64_t elements() const { return ne[0] * ne[1] * ne[2] * ne[3]; }

  /// Address of element (0, i, j) as float; for F32 tensors.
  float* f32(int64_t i = 0, int64_t j = 0) const {
    return reinterpret_cast<float*>(data + i * stride[1] + j * stride[2]);
  }
  /// Number of rows of an activation: the last dimension in use ({features, rows} or {head_dim, heads, rows}).
  int64_t rows() const { return ne[2] > 1 || stride[2] != 0 ? ne[2] : ne[1]; }
};

/// A contiguous F32 view {cols, rows} at data.
Tensor matrix_f32(float* data, int64_t cols, int64_t rows);

/// A contiguous view of n F32 values.
Tensor vector_f32(float* data, int64_t n);

/// {features, rows} seen as {head_dim, heads, rows}, where head h starts at feature offset + h * step.
/// The usual case is offset 0, step == head_dim, heads * head_dim == features. Qwen3.5's gated attention has
/// step 2 * head_dim: query and gate of each head lie side by side.
Tensor heads_view(const Tensor& x, int64_t offset, int64_t head_dim, int64_t heads, int64_t step);

/// Features [offset, offset + n) of {features, rows}.
Tensor slice(const Tensor& x, int64_t offset, int64_t n);

/// Rows [first, first + n) of {features, rows} or {head_dim, heads, rows}.
Tensor rows_of(const Tensor& x, int64_t first, int64_t n);

}  // namespace kz
