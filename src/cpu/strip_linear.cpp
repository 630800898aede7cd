// Matrix products on strips: activations become 8-bit codes once per product group, weights are read as they lie.
#include "core/error.h"
#include "cpu/backend_impl.h"
#include "cpu/strip/strip.h"

namespace kz {

/// All rows of x as codes, in the shared work memory.
Q8Batch CpuBackend::quantise_rows(const Tensor& x) {
  Scratch scratch = workspace_.shared();
  const Q8Batch batch(scratch, x.ne[0], x.ne[1]);
  pool_.parallel_for(x.ne[1], 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t in_group = r % batch.group_rows;
      table_.strips->quantise_row(x.f32(r), in_group, batch.group(r - in_group));
    }
  });
  return batch;
}

/// Strips [first, first + n) of a packed weight and all rows: group by group, so that the codes of a group stay in the
/// second cache.
void CpuBackend::multiply_strips(const Q8Batch& batch, const Product& product, int64_t first, int64_t n,
                                 float* part) const {
  for (int64_t row = 0; row < batch.n_rows; row += batch.group_rows) {
    Product rows = product;
    const Q8Rows x = batch.group(row);
    rows.out = rows_of(product.out, row, x.n_rows);
    multiply_group(x, rows, first, n, part);
  }
}

/// `part` takes a last strip that is wider than the matrix.
void CpuBackend::multiply_group(const Q8Rows& x, const Product& product, int64_t first, int64_t n, float* part) const {
  const Weight& w = *product.weight;
  const bool many = table_.batches != nullptr && x.n_rows >= table_.batches->least_rows;
  const StripKernels& kernels = many ? *table_.batches : *table_.strips;
  StripProductArgs args;
  args.gguf_type = static_cast<int32_t>(w.dtype);
  args.stride_bytes = strip_layout(w.dtype, w.cols).stride_bytes();
  args.strips = w.data + first * args.stride_bytes;
  args.cols = w.cols;
  args.x = &x;
  args.n_rows = x.n_rows;
  args.out = product.out.f32() + kStripRows * first;
  args.out_stride = product.out.stride[1] / static_cast<int64_t>(sizeof(float));
  const int64_t whole = std::min(n, w.rows / kStripRows - first);
  args.n_strips = whole;
  if (whole > 0) kernels.product(args);
  if (whole < n) {
    float* out = args.out + kStripRows * whole;
    const int64_t width = w.rows - kStripRows * (first + whole), stride = args.out_stride;
    args.strips += whole * args.stride_bytes;
    args.n_strips = 1;
    args.out = part;
    args.out_stride = kStripRows;
    kernels.product(args);
    for (int64_t r = 0; r < x.n_rows; ++r) std::copy_n(part + r * kStripRows, width, out + r * stride);
  }
  if (product.bias.empty()) return;
  const int64_t begin = kStripRows * first, end = std::min(begin + kStripRows * n, w.rows);
  for (int64_t r = 0; r < x.n_rows; ++r)
    kernels_.add(product.out.f32(r) + begin, product.bias.f32() + begin, end - begin);
}

}  // namespace kz
