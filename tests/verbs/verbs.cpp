#include "verbs.h"

#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/error.h"
#include "cpu/cpu_backend.h"

namespace kz::testing {
namespace {

constexpr float kGuard = -98765.25f;
constexpr double kFloatRounding = 0x1p-24;
constexpr double kDoubleRounding = 0x1p-52;
/// Below this, float kernels may flush or clamp an exponential.
constexpr double kTiny = 1e-30;

}  // namespace

std::vector<std::string> backend_names() {
  std::vector<std::string> names = {"reference"};
  for (const KernelTableInfo& table : cpu_kernel_tables()) {
    if (table.runs_here) names.push_back("cpu-" + std::string(table.name));
  }
  return names;
}

std::unique_ptr<Backend> open_backend(const std::string& name, int n_threads) {
  if (name == "reference") return make_reference_backend();
  CpuOptions options;
  options.n_threads = n_threads;
  options.isa = name.substr(std::string("cpu-").size());
  return make_cpu_backend(options);
}

std::string instance_name(const ::testing::TestParamInfo<std::string>& instance) {
  std::string name = instance.param;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

WorkLimits VerbTest::limits() {
  WorkLimits limits;
  limits.rows = 1024;
  limits.heads = 16;
  limits.head_dim = 256;
  limits.positions = 2048;
  limits.features = 9728;
  limits.delta = {16, 32, 128, DeltaForm::token};
  return limits;
}

double VerbTest::tolerance(double expected, double n_operations, double magnitude) const {
  const double rounding = works_in_double() ? kDoubleRounding : kFloatRounding;
  return 1.01 * (kFloatRounding * std::abs(expected) + n_operations * rounding * magnitude) + kTiny;
}

Field::Field(int64_t cols, int64_t rows, int64_t pad)
    : cols_(cols),
      rows_(rows),
      stride_(cols + pad),
      values_(static_cast<size_t>(kLead + rows * stride_ + kLead), kGuard) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) at(c, r) = std::numeric_limits<float>::quiet_NaN();  // a result must be written
  }
}

Field& Field::fill(uint32_t seed, float spread, float centre) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(centre, spread);
  for (int64_t r = 0; r < rows_; ++r) {
    for (int64_t c = 0; c < cols_; ++c) at(c, r) = normal(random);
  }
  return *this;
}

Tensor Field::tensor() const {
  Tensor t = matrix_f32(const_cast<float*>(values_.data()) + kLead, cols_, rows_);
  t.stride[1] = 4 * stride_;
  return t;
}

bool Field::guards_intact() const {
  for (size_t i = 0; i < values_.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i) - kLead;
    const bool inside = at >= 0 && at < rows_ * stride_ && at % stride_ < cols_;
    if (!inside && values_[i] != kGuard) return false;
  }
  return true;
}

bool Field::same_rows(int64_t first, const Field& other, int64_t other_first, int64_t n) const {
  for (int64_t r = 0; r < n; ++r) {
    const float* mine = &values_[index(0, first + r)];
    const float* theirs = &other.values_[other.index(0, other_first + r)];
    if (std::memcmp(mine, theirs, static_cast<size_t>(cols_) * sizeof(float)) != 0) return false;
  }
  return true;
}

bool Field::finite() const {
  for (int64_t r = 0; r < rows_; ++r) {
    for (int64_t c = 0; c < cols_; ++c) {
      if (!std::isfinite(at(c, r))) return false;
    }
  }
  return true;
}

void Field::copy_rows(int64_t first, const Field& from, int64_t from_first, int64_t n) {
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < cols_; ++c) at(c, first + r) = from.values_[from.index(c, from_first + r)];
  }
}

Batch& Batch::add(State& state, int64_t n) {
  state.begin(n);
  spans_.push_back({&state, state.position(), size(), n});
  tokens_.resize(tokens_.size() + static_cast<size_t>(n), 0);
  return *this;
}

Batch& Batch::logits(std::vector<int32_t> rows) {
  logit_rows_ = std::move(rows);
  return *this;
}

Batch Batch::of(std::vector<int32_t> tokens) {
  Batch batch;
  batch.tokens_ = std::move(tokens);
  return batch;
}

void Batch::commit() {
  for (const Span& span : spans_) span.state->commit(span.n_rows);
}

std::unique_ptr<State> new_state(const StateLayout& layout, int64_t capacity, DType kv_type, State::Rollback rollback) {
  const int64_t n_blocks = layout.attention.empty() ? 0 : (capacity + kKvBlockPositions - 1) / kKvBlockPositions;
  return std::make_unique<State>(layout, std::make_shared<KvPool>(layout, n_blocks, kv_type, kv_type), capacity,
                                 rollback);
}

void Worst::see(double actual, double expected, double bound, int64_t row, int64_t col) {
  ++seen_;
  double ratio = std::abs(actual - expected) / bound;
  if (!std::isfinite(actual) || std::isnan(ratio)) ratio = std::numeric_limits<double>::infinity();
  if (row_ >= 0 && ratio <= ratio_) return;
  ratio_ = ratio;
  actual_ = actual;
  expected_ = expected;
  bound_ = bound;
  row_ = row;
  col_ = col;
}

::testing::AssertionResult Worst::within_bounds() const {
  if (seen_ > 0 && ratio_ <= 1.0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "worst of " << seen_ << " values: row " << row_ << " feature " << col_
                                       << " is " << actual_ << ", expected " << expected_ << ", off by "
                                       << std::abs(actual_ - expected_) << ", bound " << bound_ << " (x" << ratio_
                                       << ")";
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace kz::testing
