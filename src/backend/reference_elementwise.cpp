// Verbs that look at one row (or one head of a row) at a time.
#include <cmath>

#include "backend/reference.h"
#include "core/error.h"

namespace kz {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double silu(double x) { return x * sigmoid(x); }
double softplus(double x) { return x > 20.0 ? x : std::log1p(std::exp(x)); }

bool same_shape(const Tensor& a, const Tensor& b) { return a.ne == b.ne; }

/// Calls body(i, j) for every contiguous piece of an activation: {d, R} or {D, heads, R}.
template <class Body>
void for_each_piece(const Tensor& x, Body body) {
  for (int64_t j = 0; j < x.ne[2]; ++j) {
    for (int64_t i = 0; i < x.ne[1]; ++i) body(i, j);
  }
}

double inverse_rms(const float* x, int64_t n, float eps) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return 1.0 / std::sqrt(sum / static_cast<double>(n) + static_cast<double>(eps));
}

}  // namespace

void reference_rms_norm(Tensor x, Tensor w, float eps, Tensor out) {
  KZ_CHECK(same_shape(x, out) && w.ne[0] == x.ne[0]);
  const int64_t n = x.ne[0];
  for_each_piece(x, [&](int64_t i, int64_t j) {
    const float* in = x.f32(i, j);
    float* to = out.f32(i, j);
    const double scale = inverse_rms(in, n, eps);
    for (int64_t c = 0; c < n; ++c) {
      to[c] = static_cast<float>(static_cast<double>(in[c]) * scale * static_cast<double>(w.f32()[c]));
    }
  });
}

void ReferenceBackend::rms_norm(Tensor x, Tensor w, float eps, Tensor out) {
  count(kRmsNorm);
  reference_rms_norm(x, w, eps, out);
}

void ReferenceBackend::norm_silu_gate(Tensor x, Tensor w, float eps, Tensor z) {
  count(kNormSiluGate);
  KZ_CHECK(same_shape(x, z) && w.ne[0] == x.ne[0]);
  const int64_t n = x.ne[0];
  for_each_piece(x, [&](int64_t i, int64_t j) {
    float* to = x.f32(i, j);
    const float* gate = z.f32(i, j);
    const double scale = inverse_rms(to, n, eps);
    for (int64_t c = 0; c < n; ++c) {
      const double normed = static_cast<double>(to[c]) * scale * static_cast<double>(w.f32()[c]);
      to[c] = static_cast<float>(normed * silu(static_cast<double>(gate[c])));
    }
  });
}

void ReferenceBackend::rope_angles(const RopeTable& rope, const Rows& rows, Tensor angles) {
  count(kRopeAngles);
  const int64_t n_pairs = rope.n_rot() / 2;
  KZ_CHECK(angles.ne[0] == rope.n_rot() && angles.rows() == rows.size());
  for (const Span& span : rows.spans) {
    for (int64_t r = 0; r < span.n_rows; ++r) {
      float* cosines = angles.f32(span.first_row + r);
      float* sines = cosines + n_pairs;
      const auto position = static_cast<double>(span.position + r);
      for (int64_t i = 0; i < n_pairs; ++i) {
        const double theta = position * rope.frequency[static_cast<size_t>(i)];
        cosines[i] = static_cast<float>(std::cos(theta) * rope.magnitude);
        sines[i] = static_cast<float>(std::sin(theta) * rope.magnitude);
      }
    }
  }
}

void ReferenceBackend::rope(Tensor x, const RopeTable& rope, Tensor angles) {
  count(kRope);
  const int64_t n_pairs = rope.n_rot() / 2;
  KZ_CHECK(x.ne[0] >= rope.n_rot() && x.ne[2] == angles.rows());
  for_each_piece(x, [&](int64_t head, int64_t row) {
    float* features = x.f32(head, row);
    const float* cosines = angles.f32(row);
    const float* sines = cosines + n_pairs;
    for (int64_t i = 0; i < n_pairs; ++i) {
      float& first = features[rope.adjacent ? 2 * i : i];
      float& second = features[rope.adjacent ? 2 * i + 1 : i + n_pairs];
      const double a = first, b = second, cosine = cosines[i], sine = sines[i];
      first = static_cast<float>(a * cosine - b * sine);
      second = static_cast<float>(a * sine + b * cosine);
    }
  });
}

void ReferenceBackend::sigmoid_gate(Tensor x, Tensor gate) {
  count(kSigmoidGate);
  KZ_CHECK(same_shape(x, gate));
  for_each_piece(x, [&](int64_t i, int64_t j) {
    float* to = x.f32(i, j);
    const float* by = gate.f32(i, j);
    for (int64_t c = 0; c < x.ne[0]; ++c) {
      to[c] = static_cast<float>(static_cast<double>(to[c]) * sigmoid(static_cast<double>(by[c])));
    }
  });
}

void ReferenceBackend::decay(Tensor alpha, Tensor dt_bias, Tensor a) {
  count(kDecay);
  KZ_CHECK(dt_bias.ne[0] == alpha.ne[0] && a.ne[0] == alpha.ne[0]);
  for_each_piece(alpha, [&](int64_t i, int64_t j) {
    float* to = alpha.f32(i, j);
    for (int64_t h = 0; h < alpha.ne[0]; ++h) {
      const double x = static_cast<double>(to[h]) + static_cast<double>(dt_bias.f32()[h]);
      to[h] = static_cast<float>(static_cast<double>(a.f32()[h]) * softplus(x));
    }
  });
}

void ReferenceBackend::swiglu(Tensor gate, Tensor up, Tensor out) {
  count(kSwiglu);
  KZ_CHECK(same_shape(gate, up) && same_shape(gate, out));
  for_each_piece(gate, [&](int64_t i, int64_t j) {
    const float* g = gate.f32(i, j);
    const float* u = up.f32(i, j);
    float* to = out.f32(i, j);
    for (int64_t c = 0; c < gate.ne[0]; ++c) {
      to[c] = static_cast<float>(silu(static_cast<double>(g[c])) * static_cast<double>(u[c]));
    }
  });
}

void ReferenceBackend::add(Tensor x, Tensor y) {
  count(kAdd);
  KZ_CHECK(same_shape(x, y));
  for_each_piece(x, [&](int64_t i, int64_t j) {
    float* to = x.f32(i, j);
    const float* from = y.f32(i, j);
    for (int64_t c = 0; c < x.ne[0]; ++c) to[c] += from[c];
  });
}

}  // namespace kz
