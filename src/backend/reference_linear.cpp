// Matrix products: y = W x (+ bias), one dequantised weight row at a time.
#include <algorithm>

#include "backend/reference.h"
#include "core/blocks.h"
#include "core/error.h"

namespace kz {
namespace {

/// Weight rows that a worker takes at a time. Results do not depend on it.
constexpr int64_t kGrain = 8;

/// sum of a[i] * b[i] in double: eight partial sums over i mod 8, added in order (fixed, so that a compiler may use
/// vector registers without changing the result).
double dot(const float* a, const float* b, int64_t n) {
  constexpr int64_t kLanes = 8;
  double lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lane[l] += static_cast<double>(a[i + l]) * static_cast<double>(b[i + l]);
  }
  for (; i < n; ++i) lane[i % kLanes] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  double sum = 0;
  for (const double partial : lane) sum += partial;
  return sum;
}

}  // namespace

void ReferenceBackend::product(Tensor x, const Weight& w, Tensor out, Tensor bias) {
  KZ_CHECK(x.ne[0] == w.cols && out.ne[0] == w.rows && x.ne[1] == out.ne[1]);
  pool_.parallel_for(w.rows, kGrain, [&](int64_t begin, int64_t end, int worker) {
    float* row = floats(worker, w.cols);
    for (int64_t n = begin; n < end; ++n) {
      dequantise_row(w.dtype, w.data + n * w.row_bytes, row, w.cols);
      const double b = bias.empty() ? 0.0 : static_cast<double>(bias.f32()[n]);
      for (int64_t r = 0; r < x.ne[1]; ++r) out.f32(r)[n] = static_cast<float>(dot(row, x.f32(r), w.cols) + b);
    }
  });
}

void ReferenceBackend::linear_many(Tensor x, std::span<const Product> products) {
  count(kLinear, products.size());
  for (const Product& p : products) product(x, *p.weight, p.out, p.bias);
}

}  // namespace kz
