#include "backend/key_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "backend/kv_row.h"
#include "core/error.h"

namespace kz {
namespace {

constexpr int64_t kLongestStretch = 256;

int64_t stretch_of(int64_t n) { return std::min(n & -n, kLongestStretch); }

bool is_rotated(DType type) { return type == DType::q8_0; }

/// The unnormalised transform of n values, n a power of two: sums and differences of neighbours at growing distance.
void add_and_subtract(float* x, int64_t n) {
  for (int64_t step = 1; step < n; step *= 2) {
    for (int64_t first = 0; first < n; first += 2 * step) {
      for (int64_t i = first; i < first + step; ++i) {
        const float a = x[i], b = x[i + step];
        x[i] = a + b;
        x[i + step] = a - b;
      }
    }
  }
}

}  // namespace

void rotate_features(float* x, int64_t n) {
  const int64_t stretch = stretch_of(n);
  const float norm = 1.0f / std::sqrt(static_cast<float>(stretch));
  for (int64_t first = 0; first < n; first += stretch) add_and_subtract(x + first, stretch);
  for (int64_t i = 0; i < n; ++i) x[i] *= norm;
}

void take_key_centres(const Tensor& k, int64_t layer, const Span& span) {
  if (!is_rotated(span.state->pool().key_type()) || span.position != 0 || span.n_rows == 0) return;
  const AttentionLayout& layout = span.state->pool().layout(layer);
  for (int64_t head = 0; head < layout.n_kv_heads; ++head) {
    std::memcpy(span.state->key_centre(layer, head), k.f32(head, span.first_row),
                static_cast<size_t>(layout.key_dim) * sizeof(float));
  }
}

void store_key_row(const State& state, int64_t layer, int64_t head, const float* key, std::byte* row) {
  const DType type = state.pool().key_type();
  const int64_t n = state.pool().layout(layer).key_dim;
  if (!is_rotated(type)) return store_kv_row(type, key, row, n);
  const float* centre = state.key_centre(layer, head);
  const int64_t stretch = stretch_of(n);
  KZ_CHECK(stretch % dtype_info(type).block_elements == 0);
  std::array<float, kLongestStretch> rotated;
  for (int64_t first = 0; first < n; first += stretch) {
    for (int64_t i = 0; i < stretch; ++i) rotated[static_cast<size_t>(i)] = key[first + i] - centre[first + i];
    rotate_features(rotated.data(), stretch);
    store_kv_row(type, rotated.data(), row + row_bytes(type, first), stretch);
  }
}

void load_key_row(const State& state, int64_t layer, int64_t head, const std::byte* row, float* key) {
  const DType type = state.pool().key_type();
  const int64_t n = state.pool().layout(layer).key_dim;
  load_kv_row(type, row, key, n);
  if (!is_rotated(type)) return;
  rotate_features(key, n);
  const float* centre = state.key_centre(layer, head);
  for (int64_t i = 0; i < n; ++i) key[i] += centre[i];
}

}  // namespace kz
