#include "backend/key_rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

namespace kz {
namespace {

std::vector<float> random_row(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(n));
  for (float& value : x) value = normal(random);
  return x;
}

/// Entry (i, j) of the Hadamard matrix: the sign is the parity of the bits that i and j share.
double hadamard(int64_t i, int64_t j) { return std::popcount(static_cast<uint64_t>(i & j)) % 2 == 0 ? 1.0 : -1.0; }

TEST(KeyRows, RotationIsTheHadamardMatrix) {
  for (const auto& [n, stretch] : {std::pair{32, 32}, {64, 64}, {96, 32}, {256, 256}, {320, 64}, {512, 256}}) {
    const std::vector<float> x = random_row(n, static_cast<uint32_t>(n));
    std::vector<float> y = x;
    rotate_features(y.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t first = i / stretch * stretch;
      double expected = 0;
      for (int64_t j = 0; j < stretch; ++j) {
        expected += hadamard(i - first, j) * static_cast<double>(x[static_cast<size_t>(first + j)]);
      }
      EXPECT_NEAR(y[static_cast<size_t>(i)], expected / std::sqrt(static_cast<double>(stretch)), 1e-5);
    }
    rotate_features(y.data(), n);  // its own inverse
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i], x[i], 1e-5);
  }
}

/// Keys of one head with two features far from the others, as Qwen2.5 has them.
class CachedKeys : public ::testing::Test {
 protected:
  static constexpr int64_t kDim = 64, kRows = 20;

  CachedKeys() {
    for (int64_t r = 0; r < kRows; ++r) {
      std::vector<float> row = random_row(kDim, static_cast<uint32_t>(r + 1));
      row[31] += 211;
      row[63] -= 158;
      keys_.insert(keys_.end(), row.begin(), row.end());
    }
  }

  /// Stores all rows and returns them as they are read back.
  std::vector<float> through_cache(DType type) {
    const StateLayout layout{{{1, kDim, kDim}}, {}};
    State state(layout, std::make_shared<KvPool>(layout, 1, type, DType::f32), kRows);
    state.begin(kRows);
    const Span span{&state, 0, 0, kRows};
    const Tensor k = heads_view(matrix_f32(keys_.data(), kDim, kRows), 0, kDim, 1, kDim);
    take_key_centres(k, 0, span);
    std::vector<float> out(keys_.size());
    for (int64_t r = 0; r < kRows; ++r) {
      std::byte* row = state.pool().keys(state.blocks()[0], 0, 0) + r * state.pool().key_row_bytes(0);
      store_key_row(state, 0, 0, k.f32(0, r), row);
      load_key_row(state, 0, 0, row, out.data() + r * kDim);
    }
    state.commit(kRows);
    return out;
  }

  std::vector<float> keys_;
};

TEST_F(CachedKeys, OutliersDoNotSpoilTheirNeighbours) {
  const std::vector<float> out = through_cache(DType::q8_0);
  // Differences of ordinary features are below 10; plain Q8_0 would be off by up to 211 / 254.
  for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], keys_[i], 0.06) << i;
  for (int64_t i = 0; i < kDim; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], keys_[static_cast<size_t>(i)]);
}

TEST_F(CachedKeys, FloatTypesAreKeptAsTheyAre) {
  EXPECT_EQ(through_cache(DType::f32), keys_);
  const std::vector<float> out = through_cache(DType::f16);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], keys_[i], std::abs(keys_[i]) * 0x1p-11 + 1e-7);
}

}  // namespace
}  // namespace kz
