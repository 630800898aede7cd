#include "core/tensor.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "core/error.h"

namespace kz {
namespace {

/// {12 features, 5 rows}; the value of feature f of row r is 100 r + f.
class TensorViews : public testing::Test {
 protected:
  static constexpr int64_t kCols = 12;
  static constexpr int64_t kRows = 5;

  TensorViews() : numbers_(kCols * kRows) {
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t f = 0; f < kCols; ++f)
        numbers_[static_cast<size_t>(r * kCols + f)] = static_cast<float>(100 * r + f);
    }
    x_ = matrix_f32(numbers_.data(), kCols, kRows);
  }

  std::vector<float> numbers_;
  Tensor x_;
};

TEST_F(TensorViews, Matrix) {
  EXPECT_EQ(x_.dtype, DType::f32);
  EXPECT_FALSE(x_.empty());
  EXPECT_TRUE(Tensor().empty());
  EXPECT_EQ(x_.elements(), 60);
  EXPECT_EQ(x_.rows(), 5);
  EXPECT_EQ(x_.f32(3)[7], 307.0f);
}

TEST_F(TensorViews, Vector) {
  const Tensor v = vector_f32(numbers_.data(), 12);
  EXPECT_EQ(v.elements(), 12);
  EXPECT_EQ(v.rows(), 1);
  EXPECT_EQ(v.f32()[11], 11.0f);
}

TEST_F(TensorViews, HeadsSideBySide) {
  const Tensor h = heads_view(x_, 0, 4, 3, 4);
  EXPECT_EQ(h.ne, (std::array<int64_t, 4>{4, 3, 5, 1}));
  EXPECT_EQ(h.rows(), 5);
  EXPECT_EQ(h.elements(), 60);
  EXPECT_EQ(h.f32(2, 4)[1], 409.0f);  // head 2 starts at feature 8
}

TEST_F(TensorViews, HeadsWithAStepAndAnOffset) {
  // Query and gate of 2 heads of 3 side by side: q0 g0 q1 g1; the gates start at 3.
  const Tensor gates = heads_view(x_, 3, 3, 2, 6);
  EXPECT_EQ(gates.f32(0, 1)[0], 103.0f);
  EXPECT_EQ(gates.f32(1, 1)[2], 111.0f);
  EXPECT_EQ(gates.rows(), 5);
}

TEST_F(TensorViews, HeadsOfASingleRowKeepTheirShape) {
  const Tensor one = matrix_f32(numbers_.data(), kCols, 1);
  const Tensor h = heads_view(one, 0, 4, 3, 4);
  EXPECT_EQ(h.rows(), 1);
  EXPECT_EQ(h.ne[1], 3);
}

TEST_F(TensorViews, HeadsMustFit) {
  EXPECT_THROW(heads_view(x_, 1, 4, 3, 4), Error);
  EXPECT_THROW(heads_view(x_, 0, 4, 3, 5), Error);
  EXPECT_THROW(heads_view(heads_view(x_, 0, 4, 3, 4), 0, 4, 1, 4), Error);  // already seen per head
}

TEST_F(TensorViews, Slice) {
  const Tensor s = slice(x_, 5, 3);
  EXPECT_EQ(s.ne[0], 3);
  EXPECT_EQ(s.rows(), 5);
  EXPECT_EQ(s.f32(2)[0], 205.0f);
  EXPECT_EQ(s.stride[1], 48);
  EXPECT_THROW(slice(x_, 10, 3), Error);
}

TEST_F(TensorViews, RowsOf) {
  const Tensor r = rows_of(x_, 2, 3);
  EXPECT_EQ(r.rows(), 3);
  EXPECT_EQ(r.f32(0)[1], 201.0f);
  EXPECT_EQ(rows_of(x_, 5, 0).rows(), 0);
  EXPECT_THROW(rows_of(x_, 3, 3), Error);

  const Tensor h = rows_of(heads_view(x_, 0, 4, 3, 4), 1, 2);
  EXPECT_EQ(h.rows(), 2);
  EXPECT_EQ(h.ne[1], 3);
  EXPECT_EQ(h.f32(1, 1)[0], 204.0f);
}

}  // namespace
}  // namespace kz
