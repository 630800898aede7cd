// Matrix products: a panel of weight rows becomes float in a worker's cache and meets all rows of x there. The general
// path, for every block type.
#include "core/error.h"
#include "cpu/backend_impl.h"

namespace kz {
namespace {

/// F32 weights that lie where floats may lie are used in place.
bool floats_in_place(const Weight& w) {
  return w.dtype == DType::f32 && reinterpret_cast<uintptr_t>(w.data) % alignof(float) == 0;
}

}  // namespace

void CpuBackend::embed(const Weight& table, const Rows& rows, Tensor out) {
  count(kEmbed);
  KZ_CHECK(out.ne[0] == table.cols && out.ne[1] == rows.size());
  for_pieces(out, [&](int64_t r, int64_t) {
    const int64_t token = rows.tokens[static_cast<size_t>(r)];
    KZ_CHECK(token >= 0 && token < table.rows);
    dequantise(table.dtype, table.data + token * table.row_bytes, out.f32(r), table.cols);
  });
}

void CpuBackend::multiply_panel(const Tensor& x, const Product& product, int64_t first, int64_t n,
                                const PanelWork& work) const {
  const Weight& w = *product.weight;
  ProductArgs args;
  if (floats_in_place(w)) {
    args.weights = reinterpret_cast<const float*>(w.data + first * w.row_bytes);
    args.weight_stride = w.row_bytes / static_cast<int64_t>(sizeof(float));
  } else {
    for (int64_t i = 0; i < n; ++i) {
      dequantise(w.dtype, w.data + (first + i) * w.row_bytes, work.weights + i * w.cols, w.cols);
    }
    args.weights = work.weights;
    args.weight_stride = w.cols;
  }
  args.n_weights = n;
  args.x = x.f32();
  args.x_stride = x.stride[1] / static_cast<int64_t>(sizeof(float));
  args.n_rows = x.ne[1];
  args.k = w.cols;
  args.bias = product.bias.empty() ? nullptr : product.bias.f32() + first;
  args.out = product.out.f32() + first;
  args.out_stride = product.out.stride[1] / static_cast<int64_t>(sizeof(float));
  args.lanes = work.lanes;
  kernels_.product(args);
}

void CpuBackend::multiply(Tensor x, std::span<const Product> products) {
  const int64_t cols = x.ne[0], step = panel_rows(cols, x.ne[1]);
  const auto panels_of = [step](const Product& p) { return (p.weight->rows + step - 1) / step; };
  int64_t n_panels = 0;
  for (const Product& p : products) {
    KZ_CHECK(p.weight->cols == cols && p.out.ne[0] == p.weight->rows && p.out.ne[1] == x.ne[1]);
    KZ_CHECK(p.bias.empty() || p.bias.ne[0] == p.weight->rows);
    n_panels += panels_of(p);
  }
  if (x.ne[1] == 0) return;
  pool_.parallel_for(n_panels, 1, [&](int64_t begin, int64_t end, int worker) {
    Scratch scratch = workspace_.worker(worker);
    const PanelWork work(scratch, cols);
    for (int64_t panel = begin; panel < end; ++panel) {
      int64_t local = panel;
      size_t p = 0;
      while (local >= panels_of(products[p])) local -= panels_of(products[p++]);
      const int64_t first = local * step;
      multiply_panel(x, products[p], first, std::min(step, products[p].weight->rows - first), work);
    }
  });
}

void CpuBackend::linear_many(Tensor x, std::span<const Product> products) {
  for (const Product& p : products) {
    products_[static_cast<size_t>(p.weight->dtype) % kTypeIds].fetch_add(1, std::memory_order_relaxed);
  }
  multiply(x, products);
}

void CpuBackend::finish(Tensor x, Tensor norm, float eps, const Weight& head, const Rows& rows, Tensor normed,
                        Tensor logits) {
  count(kFinish);
  const int64_t n = static_cast<int64_t>(rows.logit_rows.size());
  if (n == 0) return;
  const Tensor used = rows_of(normed, 0, n);
  for_pieces(used, [&](int64_t i, int64_t) {
    norm_row(x.f32(rows.logit_rows[static_cast<size_t>(i)]), norm.f32(), eps, used.f32(i), x.ne[0]);
  });
  const Product product{&head, rows_of(logits, 0, n), {}};
  multiply(used, {&product, 1});
}

}  // namespace kz
