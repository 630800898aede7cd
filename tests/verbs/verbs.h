// What the verb tests share: the backends under test, activations with guards, batches, and error bounds.
//
// Every expected value is computed inside the tests, in double, from the formula. A backend that works in float may be
// off by the rounding that its sums allow: tolerance() holds the number of operations and the sum of magnitudes, so no
// bound is tuned. The reference works in double and may be off by the rounding of its stores only.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace kz::testing {

/// "reference", and "cpu-TABLE" for every kernel table that runs on this machine.
std::vector<std::string> backend_names();
std::unique_ptr<Backend> open_backend(const std::string& name, int n_threads = 2);

/// A test that runs for every backend.
class VerbTest : public ::testing::TestWithParam<std::string> {
 protected:
  VerbTest() : backend_(open_backend(GetParam())) { backend_->reserve(limits()); }
  static WorkLimits limits();
  Backend& op() { return *backend_; }
  bool works_in_double() const { return GetParam() == "reference"; }

  /// How far a stored float may be from `expected` after `n_operations` roundings of terms that sum to `magnitude`.
  double tolerance(double expected, double n_operations, double magnitude) const;

 private:
  std::unique_ptr<Backend> backend_;
};

/// The name of an instance: letters, digits and underscores only.
std::string instance_name(const ::testing::TestParamInfo<std::string>& instance);

#define KZ_FOR_EVERY_BACKEND(suite) \
  INSTANTIATE_TEST_SUITE_P(Every, suite, ::testing::ValuesIn(backend_names()), instance_name)

/// An activation {cols, rows} that owns its floats. Behind every row lie floats that no verb may touch.
class Field {
 public:
  Field(int64_t cols, int64_t rows, int64_t pad = 5);
  /// Normal numbers times `spread` plus `centre`; the same for the same seed.
  Field& fill(uint32_t seed, float spread = 1.0f, float centre = 0.0f);

  Tensor tensor() const;
  Tensor heads(int64_t n_heads) const { return heads_view(tensor(), 0, cols_ / n_heads, n_heads, cols_ / n_heads); }
  float& at(int64_t col, int64_t row) { return values_[index(col, row)]; }
  double at(int64_t col, int64_t row) const { return static_cast<double>(values_[index(col, row)]); }
  int64_t cols() const { return cols_; }
  int64_t rows() const { return rows_; }

  /// True when nothing was written between the rows or around them.
  bool guards_intact() const;
  /// Rows [first, first + n) are the same bits as rows [other_first, ...) of `other`.
  bool same_rows(int64_t first, const Field& other, int64_t other_first, int64_t n) const;
  bool finite() const;
  void copy_rows(int64_t first, const Field& from, int64_t from_first, int64_t n);

 private:
  size_t index(int64_t col, int64_t row) const { return static_cast<size_t>(kLead + row * stride_ + col); }
  static constexpr int64_t kLead = 16;
  int64_t cols_, rows_, stride_;
  std::vector<float> values_;
};

/// Spans of states and the rows that they take in one batch.
class Batch {
 public:
  /// Begins the next n rows of a state and adds them behind the rows so far.
  Batch& add(State& state, int64_t n);
  Batch& logits(std::vector<int32_t> rows);
  /// Rows of no state, for verbs that do not look at history.
  static Batch of(std::vector<int32_t> tokens);

  Rows rows() const { return {spans_, tokens_, logit_rows_}; }
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  void commit();

 private:
  std::vector<Span> spans_;
  std::vector<int32_t> tokens_, logit_rows_;
};

/// A state with a pool of its own.
std::unique_ptr<State> new_state(const StateLayout& layout, int64_t capacity = 4096, DType kv_type = DType::f32,
                                 State::Rollback rollback = State::Rollback::none);

/// Collects how far results are off, relative to their bounds; the worst one is what a failure prints.
class Worst {
 public:
  void see(double actual, double expected, double bound, int64_t row, int64_t col);
  double ratio() const { return ratio_; }
  ::testing::AssertionResult within_bounds() const;

 private:
  double ratio_ = 0, actual_ = 0, expected_ = 0, bound_ = 0;
  int64_t row_ = -1, col_ = -1, seen_ = 0;
};

double sigmoid(double x);

}  // namespace kz::testing
