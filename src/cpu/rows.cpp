// Verbs that look at one row (or one head of a row) at a time.
#include <cmath>

#include "core/error.h"
#include "cpu/backend_impl.h"

namespace kz {
namespace {

/// 1 / sqrt(mean(x^2) + eps), rounded once.
float inverse_rms(double sum_of_squares, int64_t n, float eps) {
  return static_cast<float>(1.0 / std::sqrt(sum_of_squares / static_cast<double>(n) + static_cast<double>(eps)));
}

double softplus(double x) { return x > 20.0 ? x : std::log1p(std::exp(x)); }

}  // namespace

void CpuBackend::norm_row(const float* x, const float* w, float eps, float* out, int64_t n) const {
  kernels_.scale(x, inverse_rms(kernels_.sum_of_squares(x, n), n, eps), w, out, n);
}

void CpuBackend::rms_norm(Tensor x, Tensor w, float eps, Tensor out) {
  const VerbTimer timer = count(kRmsNorm);
  KZ_CHECK(x.ne == out.ne && w.ne[0] == x.ne[0]);
  for_pieces(x, [&](int64_t i, int64_t j) { norm_row(x.f32(i, j), w.f32(), eps, out.f32(i, j), x.ne[0]); });
}

void CpuBackend::norm_silu_gate(Tensor x, Tensor w, float eps, Tensor z) {
  const VerbTimer timer = count(kNormSiluGate);
  KZ_CHECK(x.ne == z.ne && w.ne[0] == x.ne[0]);
  for_pieces(x, [&](int64_t i, int64_t j) {
    float* row = x.f32(i, j);
    const float scale = inverse_rms(kernels_.sum_of_squares(row, x.ne[0]), x.ne[0], eps);
    kernels_.scale_silu_gate(row, scale, w.f32(), z.f32(i, j), x.ne[0]);
  });
}

void CpuBackend::rope_angles(const RopeTable& rope, const Rows& rows, Tensor angles) {
  const VerbTimer timer = count(kRopeAngles);
  const int64_t pairs = rope.n_rot() / 2;
  KZ_CHECK(angles.ne[0] == 2 * pairs && angles.ne[1] == rows.size());
  for (const Span& span : rows.spans) {
    for_pieces(rows_of(angles, span.first_row, span.n_rows), [&](int64_t r, int64_t) {
      float* row = angles.f32(span.first_row + r);
      for (int64_t i = 0; i < pairs; ++i) {
        const double theta = static_cast<double>(span.position + r) * rope.frequency[static_cast<size_t>(i)];
        row[i] = static_cast<float>(std::cos(theta) * rope.magnitude);
        row[pairs + i] = static_cast<float>(std::sin(theta) * rope.magnitude);
      }
    });
  }
}

void CpuBackend::rope(Tensor x, const RopeTable& rope, Tensor angles) {
  const VerbTimer timer = count(kRope);
  const int64_t pairs = rope.n_rot() / 2;
  KZ_CHECK(x.ne[0] >= 2 * pairs && angles.ne[1] == x.ne[2]);
  for_pieces(x, [&](int64_t head, int64_t row) {
    float* features = x.f32(head, row);
    const float *cos = angles.f32(row), *sin = cos + pairs;
    if (!rope.adjacent) {
      kernels_.rotate(features, features + pairs, cos, sin, pairs);
      return;
    }
    for (int64_t i = 0; i < pairs; ++i) {
      const float a = features[2 * i], b = features[2 * i + 1];
      features[2 * i] = a * cos[i] - b * sin[i];
      features[2 * i + 1] = a * sin[i] + b * cos[i];
    }
  });
}

void CpuBackend::sigmoid_gate(Tensor x, Tensor gate) {
  const VerbTimer timer = count(kSigmoidGate);
  KZ_CHECK(x.ne == gate.ne);
  for_pieces(x, [&](int64_t i, int64_t j) { kernels_.sigmoid_gate(x.f32(i, j), gate.f32(i, j), x.ne[0]); });
}

void CpuBackend::swiglu(Tensor gate, Tensor up, Tensor out) {
  const VerbTimer timer = count(kSwiglu);
  KZ_CHECK(gate.ne == up.ne && gate.ne == out.ne);
  for_pieces(gate,
             [&](int64_t i, int64_t j) { kernels_.swiglu(gate.f32(i, j), up.f32(i, j), out.f32(i, j), gate.ne[0]); });
}

void CpuBackend::add(Tensor x, Tensor y) {
  const VerbTimer timer = count(kAdd);
  KZ_CHECK(x.ne == y.ne);
  for_pieces(x, [&](int64_t i, int64_t j) { kernels_.add(x.f32(i, j), y.f32(i, j), x.ne[0]); });
}

void CpuBackend::decay(Tensor alpha, Tensor dt_bias, Tensor a) {
  const VerbTimer timer = count(kDecay);
  KZ_CHECK(dt_bias.ne[0] == alpha.ne[0] && a.ne[0] == alpha.ne[0]);
  for_pieces(alpha, [&](int64_t r, int64_t j) {
    float* row = alpha.f32(r, j);
    for (int64_t h = 0; h < alpha.ne[0]; ++h) {
      const double x = static_cast<double>(row[h]) + static_cast<double>(dt_bias.f32()[h]);
      row[h] = static_cast<float>(static_cast<double>(a.f32()[h]) * softplus(x));
    }
  });
}

}  // namespace kz
