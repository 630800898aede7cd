#include "backend/kv_row.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/blocks.h"
#include "core/error.h"

namespace kz {
namespace {

std::vector<float> values(int64_t n) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& f : x) f = normal(random);
  return x;
}

std::vector<float> round_trip(DType type, const std::vector<float>& x) {
  const auto n = static_cast<int64_t>(x.size());
  // One byte off: rows of Q8_0 and F16 need not be aligned.
  std::vector<std::byte> bytes(static_cast<size_t>(row_bytes(type, n)) + 2, std::byte{0xAB});
  store_kv_row(type, x.data(), bytes.data() + 1, n);
  EXPECT_EQ(bytes.front(), std::byte{0xAB});
  EXPECT_EQ(bytes.back(), std::byte{0xAB});
  std::vector<float> y(x.size());
  load_kv_row(type, bytes.data() + 1, y.data(), n);
  return y;
}

TEST(KvRow, Float32IsExact) { EXPECT_EQ(round_trip(DType::f32, values(80)), values(80)); }

TEST(KvRow, Float16IsWithinHalfAUnitOfItsLastPlace) {
  const std::vector<float> x = values(77), y = round_trip(DType::f16, x);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_LE(std::abs(y[i] - x[i]), std::abs(x[i]) * 0x1p-11f) << i;
}

TEST(KvRow, Q8RowsAreTheBlocksOfAFile) {
  const std::vector<float> x = values(128);
  std::vector<std::byte> row(static_cast<size_t>(row_bytes(DType::q8_0, 128))), file(row.size());
  store_kv_row(DType::q8_0, x.data(), row.data(), 128);
  quantise_row(DType::q8_0, x.data(), file.data(), 128);
  EXPECT_EQ(row, file);
  const std::vector<float> y = round_trip(DType::q8_0, x);
  for (size_t block = 0; block < 4; ++block) {
    float largest = 0;
    for (size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[32 * block + i]));
    // Half a step of largest / 127, and the scale's own rounding to F16 times at most 127 steps.
    const float bound = largest / 127 * 0.5f * 1.001f + largest * 0x1p-11f;
    for (size_t i = 32 * block; i < 32 * block + 32; ++i) EXPECT_LE(std::abs(y[i] - x[i]), bound) << i;
  }
}

TEST(KvRow, Q8RefusesAValueThatIsNotFinite) {
  std::vector<float> x = values(32);
  x[7] = std::numeric_limits<float>::infinity();
  std::vector<std::byte> row(34);
  EXPECT_THROW(store_kv_row(DType::q8_0, x.data(), row.data(), 32), Error);
}

}  // namespace
}  // namespace kz
