// Matrix products: a panel of weight rows becomes float in a worker's cache and meets all rows of x there. The general
// path, for every block type. Float weights and few rows of x go without the panel.
#include <optional>

#include "core/error.h"
#include "cpu/backend_impl.h"
#include "cpu/strip/strip.h"

namespace kz {
namespace {

/// F32 weights that lie where floats may lie are used in place.
bool floats_in_place(const Weight& w) {
  return w.dtype == DType::f32 && reinterpret_cast<uintptr_t>(w.data) % alignof(float) == 0;
}

}  // namespace

/// A row of a packed table: in pieces through a small buffer on the stack.
void CpuBackend::embed_packed(const Weight& table, int64_t token, float* out) const {
  const DTypeInfo& info = dtype_info(table.dtype);
  constexpr int64_t kMostBytes = 256;
  std::byte block[kMostBytes];
  KZ_CHECK(info.block_bytes <= kMostBytes);
  for (int64_t b = 0; b < table.cols / info.block_elements; ++b) {
    PackedWeights::file_block(table, token, b, block);
    dequantise(table.dtype, block, out + b * info.block_elements, info.block_elements);
  }
}

void CpuBackend::embed(const Weight& table, const Rows& rows, Tensor out) {
  const VerbTimer timer = count(kEmbed);
  KZ_CHECK(out.ne[0] == table.cols && out.ne[1] == rows.size());
  for_pieces(out, [&](int64_t r, int64_t) {
    const int64_t token = rows.tokens[static_cast<size_t>(r)];
    KZ_CHECK(token >= 0 && token < table.rows);
    if (table.layout == WeightLayout::packed) return embed_packed(table, token, out.f32(r));
    dequantise(table.dtype, table.data + token * table.row_bytes, out.f32(r), table.cols);
  });
}

/// Few rows of x and float weights: no panel. False for weights of other types.
bool CpuBackend::multiply_stored(const Tensor& x, const Product& product, int64_t first, int64_t n) const {
  const Weight& w = *product.weight;
  if (x.ne[1] > kMostTileRows) return false;
  StoredProductArgs args;
  args.gguf_type = static_cast<int32_t>(w.dtype);
  args.weights = w.data + first * w.row_bytes;
  args.weight_stride_bytes = w.row_bytes;
  args.n_weights = n;
  args.x = x.f32();
  args.x_stride = x.stride[1] / static_cast<int64_t>(sizeof(float));
  args.n_rows = x.ne[1];
  args.k = w.cols;
  args.bias = product.bias.empty() ? nullptr : product.bias.f32() + first;
  args.out = product.out.f32() + first;
  args.out_stride = product.out.stride[1] / static_cast<int64_t>(sizeof(float));
  return kernels_.stored_product(args);
}

void CpuBackend::multiply_panel(const Tensor& x, const Product& product, int64_t first, int64_t n,
                                const PanelWork& work) const {
  if (multiply_stored(x, product, first, n)) return;
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

/// How the work of one product is cut: panels of rows, or runs of strips.
struct CpuBackend::Pieces {
  Pieces(const Product& product, int64_t panel, int n_workers)
      : packed(product.weight->layout == WeightLayout::packed),
        total(packed ? (product.weight->rows + kStripRows - 1) / kStripRows : product.weight->rows),
        step(packed ? strip_run(total, n_workers) : panel) {}
  int64_t count() const { return (total + step - 1) / step; }
  bool packed;
  int64_t total;  // strips or rows
  int64_t step;
};

void CpuBackend::multiply(Tensor x, std::span<const Product> products) {
  const int64_t cols = x.ne[0], n_rows = x.ne[1], panel = panel_rows(cols, n_rows);
  const int n_workers = pool_.size();
  int64_t n_pieces = 0;
  bool packed = false;
  for (const Product& p : products) {
    KZ_CHECK(p.weight->cols == cols && p.out.ne[0] == p.weight->rows && p.out.ne[1] == n_rows);
    KZ_CHECK(p.bias.empty() || p.bias.ne[0] == p.weight->rows);
    const Pieces pieces(p, panel, n_workers);
    n_pieces += pieces.count();
    packed = packed || pieces.packed;
  }
  if (n_rows == 0) return;
  const std::optional<Q8Batch> codes = packed ? std::optional(quantise_rows(x)) : std::nullopt;
  pool_.parallel_for(n_pieces, 1, [&](int64_t begin, int64_t end, int worker) {
    Scratch scratch = workspace_.worker(worker);
    const PanelWork work(scratch, cols, q8_ ? n_rows : 0);
    for (int64_t piece = begin; piece < end; ++piece) {
      int64_t local = piece;
      size_t p = 0;
      for (int64_t n; local >= (n = Pieces(products[p], panel, n_workers).count()); ++p) local -= n;
      const Pieces pieces(products[p], panel, n_workers);
      const int64_t first = local * pieces.step, n = std::min(pieces.step, pieces.total - first);
      if (pieces.packed)
        multiply_strips(*codes, products[p], first, n, work.part);
      else
        multiply_panel(x, products[p], first, n, work);
    }
  });
}

void CpuBackend::linear_many(Tensor x, std::span<const Product> products) {
  const ProductUses::Timer timer(products_, products, times_verbs_);
  multiply(x, products);
}

void CpuBackend::finish(Tensor x, Tensor norm, float eps, const Weight& head, const Rows& rows, Tensor normed,
                        Tensor logits) {
  const int64_t n = static_cast<int64_t>(rows.logit_rows.size());
  if (n == 0) return;
  const Tensor used = rows_of(normed, 0, n);
  {
    const VerbTimer timer = count(kFinish);
    for_pieces(used, [&](int64_t i, int64_t) {
      norm_row(x.f32(rows.logit_rows[static_cast<size_t>(i)]), norm.f32(), eps, used.f32(i), x.ne[0]);
    });
  }
  const Product product{&head, rows_of(logits, 0, n), {}};
  const ProductUses::Timer timer(products_, {&product, 1}, times_verbs_);
  multiply(used, {&product, 1});
}

}  // namespace kz
