#include "core/tensor.h"

#include "core/error.h"

namespace kz {

Tensor matrix_f32(float* data, int64_t cols, int64_t rows) {
  Tensor t;
  t.data = reinterpret_cast<std::byte*>(data);
  t.ne = {cols, rows, 1, 1};
  t.stride = {4, 4 * cols, 0, 0};
  return t;
}

Tensor vector_f32(float* data, int64_t n) { return matrix_f32(data, n, 1); }

Tensor heads_view(const Tensor& x, int64_t offset, int64_t head_dim, int64_t heads, int64_t step) {
  KZ_CHECK(x.dtype == DType::f32 && x.stride[2] == 0);
  KZ_CHECK(offset + (heads - 1) * step + head_dim <= x.ne[0]);
  Tensor t = x;
  t.data = x.data + 4 * offset;
  t.ne = {head_dim, heads, x.ne[1], 1};
  t.stride = {4, 4 * step, x.stride[1], 0};
  return t;
}

Tensor slice(const Tensor& x, int64_t offset, int64_t n) {
  KZ_CHECK(x.dtype == DType::f32 && offset + n <= x.ne[0]);
  Tensor t = x;
  t.data = x.data + 4 * offset;
  t.ne[0] = n;
  return t;
}

Tensor rows_of(const Tensor& x, int64_t first, int64_t n) {
  KZ_CHECK(first + n <= x.rows());
  Tensor t = x;
  const int dim = x.stride[2] != 0 ? 2 : 1;
  t.data = x.data + first * x.stride[dim];
  t.ne[dim] = n;
  return t;
}

}  // namespace kz
