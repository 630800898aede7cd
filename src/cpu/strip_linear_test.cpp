// Class q8: products on packed weights against doubles over the same codes, and the same bits in every table.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "core/blocks.h"
#include "core/error.h"
#include "core/half.h"
#include "cpu/cpu_backend.h"
#include "cpu/kernel_tables.h"
#include "cpu/strip/strip.h"

namespace kz {
namespace {

constexpr DType kTypes[] = {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1,  DType::q8_0,
                            DType::q4_k, DType::q5_k, DType::q6_k, DType::iq4_nl};

/// Random blocks with finite scales; with `extreme`, all codes are the largest in magnitude.
std::vector<std::byte> random_weights(DType type, int64_t rows, int64_t cols, bool extreme = false) {
  std::mt19937 random(static_cast<uint32_t>(type) + 1);
  std::vector<std::byte> bytes(static_cast<size_t>(rows * row_bytes(type, cols)));
  for (std::byte& b : bytes) b = extreme ? std::byte{0xff} : static_cast<std::byte>(random());
  if (extreme && type == DType::q8_0) {
    for (std::byte& b : bytes) b = std::byte{0x80};  // -128
  }
  const int64_t size = dtype_info(type).block_bytes;
  const auto put = [&](std::byte* at) {
    const uint16_t half = f32_to_f16(0.01f * static_cast<float>(1 + random() % 9));
    std::memcpy(at, &half, 2);
  };
  for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(size)) {
    put(&bytes[at + (type == DType::q6_k ? 208 : 0)]);
    const bool two = type == DType::q4_1 || type == DType::q5_1 || type == DType::q4_k || type == DType::q5_k;
    if (two) put(&bytes[at + 2]);
  }
  return bytes;
}

std::vector<float> random_rows(int64_t rows, int64_t cols) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<size_t>(rows * cols));
  for (float& v : x) v = normal(random);
  return x;
}

struct Case {
  DType type;
  int64_t cols, n_weights, n_rows;
};

/// What the q8 backend of one table computes; bias may be empty.
std::vector<float> run(const std::string& isa, int n_threads, const Case& c, const std::vector<std::byte>& weights,
                       std::vector<float> x, std::vector<float> bias = {}) {
  const std::unique_ptr<Backend> backend = make_cpu_backend({n_threads, isa, "q8"});
  WorkLimits limits;
  limits.rows = c.n_rows;
  limits.features = c.cols;
  backend->reserve(limits);
  WeightSource source;
  source.name = "w";
  source.tensor.data = const_cast<std::byte*>(weights.data());
  source.tensor.dtype = c.type;
  source.tensor.ne = {c.cols, c.n_weights, 1, 1};
  const Weight w = backend->import_weight(source);
  EXPECT_EQ(w.layout, WeightLayout::packed);
  std::vector<float> out(static_cast<size_t>(c.n_weights * c.n_rows), std::numeric_limits<float>::quiet_NaN());
  const Tensor bias_view = bias.empty() ? Tensor() : vector_f32(bias.data(), c.n_weights);
  backend->linear(matrix_f32(x.data(), c.cols, c.n_rows), w, matrix_f32(out.data(), c.n_weights, c.n_rows), bias_view);
  return out;
}

std::vector<std::string> tables() {
  std::vector<std::string> names;
  for (const KernelTableInfo& table : cpu_kernel_tables()) {
    if (table.runs_here) names.emplace_back(table.name);
  }
  return names;
}

/// Activations as class q8 sees them: codes rint(x / d) with d = max|x| / 127 per 32 values.
std::vector<double> coded(const std::vector<float>& x) {
  std::vector<double> out(x.size());
  for (size_t b = 0; b < x.size(); b += 32) {
    float largest = 0;
    for (size_t i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(x[b + i]));
    const float d = largest / 127.0f, inverse = d > 0 ? 1.0f / d : 0;
    for (size_t i = 0; i < 32; ++i) out[b + i] = static_cast<double>(d) * std::nearbyint(x[b + i] * inverse);
  }
  return out;
}

/// Every output is within rounding of the exact sum over codes: each block adds at most three roundings.
void expect_near_exact(const Case& c, const std::vector<std::byte>& weights, const std::vector<float>& x,
                       const std::vector<float>& out) {
  const std::vector<double> codes = coded(x);
  std::vector<float> row(static_cast<size_t>(c.cols));
  const double epsilon = std::numeric_limits<float>::epsilon() * (static_cast<double>(c.cols) / 32 + 4) * 2;
  for (int64_t n = 0; n < c.n_weights; ++n) {
    dequantise_row(c.type, weights.data() + n * row_bytes(c.type, c.cols), row.data(), c.cols);
    for (int64_t r = 0; r < c.n_rows; ++r) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < c.cols; ++k) {
        const double term = row[static_cast<size_t>(k)] * codes[static_cast<size_t>(r * c.cols + k)];
        sum += term;
        magnitude += std::fabs(term);
      }
      ASSERT_NEAR(out[static_cast<size_t>(r * c.n_weights + n)], sum, epsilon * magnitude)
          << dtype_name(c.type) << " weight " << n << " row " << r;
    }
  }
}

class StripLinear : public testing::TestWithParam<DType> {
 protected:
  int64_t block() const { return dtype_info(GetParam()).block_elements; }
};

TEST_P(StripLinear, EqualsTheSumOverCodes) {
  for (const int64_t blocks : {1, 2, 3}) {
    const Case c{GetParam(), blocks * block(), 70, 9};
    const auto weights = random_weights(c.type, c.n_weights, c.cols);
    const auto x = random_rows(c.n_rows, c.cols);
    for (const std::string& isa : tables()) expect_near_exact(c, weights, x, run(isa, 2, c, weights, x));
  }
}

// A unit that adds pairs of products in 16 bits saturates here when it is fed wrongly.
TEST_P(StripLinear, LargestCodesDoNotSaturate) {
  const Case c{GetParam(), 2 * block(), 33, 3};
  const auto weights = random_weights(c.type, c.n_weights, c.cols, true);
  for (const float value : {1.0f, -1.0f}) {
    const std::vector<float> x(static_cast<size_t>(c.cols * c.n_rows), value);
    for (const std::string& isa : tables()) expect_near_exact(c, weights, x, run(isa, 1, c, weights, x));
  }
}

TEST_P(StripLinear, BitsDependOnNeitherTableThreadsNorNeighbours) {
  const int64_t cols = 3 * block();
  const int64_t n_weights = 101;
  const auto weights = random_weights(GetParam(), n_weights, cols);
  const auto x = random_rows(33, cols);
  const std::vector<float> all = run("scalar", 1, {GetParam(), cols, n_weights, 33}, weights, x);
  for (const std::string& isa : tables()) {
    for (const int64_t n_rows : {1, 2, 3, 4, 5, 6, 7, 8, 13, 33}) {
      const std::vector<float> some(x.begin(), x.begin() + n_rows * cols);
      for (const int n_threads : {1, 3}) {
        const std::vector<float> out = run(isa, n_threads, {GetParam(), cols, n_weights, n_rows}, weights, some);
        ASSERT_EQ(std::memcmp(out.data(), all.data(), out.size() * sizeof(float)), 0)
            << isa << " " << n_rows << " rows, " << n_threads << " threads";
      }
    }
  }
}

// Every way in which a table cuts rows and inputs, against plain code.
TEST_P(StripLinear, EveryNumberOfRowsHasTheSameBits) {
  const int64_t cols = (block() == 32 ? 11 : 2) * block(), n_weights = 37, most = 40;
  const auto weights = random_weights(GetParam(), n_weights, cols);
  const auto x = random_rows(most, cols);
  const std::vector<float> all = run("scalar", 1, {GetParam(), cols, n_weights, most}, weights, x);
  for (const std::string& isa : tables()) {
    if (select_kernels(isa).strips == select_kernels("scalar").strips) continue;
    for (int64_t n_rows = 1; n_rows <= most; ++n_rows) {
      const std::vector<float> some(x.begin(), x.begin() + n_rows * cols);
      const std::vector<float> out = run(isa, 1, {GetParam(), cols, n_weights, n_rows}, weights, some);
      ASSERT_EQ(std::memcmp(out.data(), all.data(), out.size() * sizeof(float)), 0) << isa << " " << n_rows << " rows";
    }
  }
}

TEST_P(StripLinear, AddsTheBias) {
  const Case c{GetParam(), 2 * block(), 45, 2};
  const auto weights = random_weights(c.type, c.n_weights, c.cols);
  const auto x = random_rows(c.n_rows, c.cols);
  const auto bias = random_rows(1, 64);
  const std::vector<float> without = run("auto", 2, c, weights, x);
  const std::vector<float> with = run("auto", 2, c, weights, x, {bias.begin(), bias.begin() + c.n_weights});
  for (size_t i = 0; i < with.size(); ++i) {
    EXPECT_EQ(with[i], without[i] + bias[i % static_cast<size_t>(c.n_weights)]);
  }
}

TEST_P(StripLinear, APackedTableGivesItsRows) {
  const int64_t cols = 3 * block(), n = 50;
  const auto weights = random_weights(GetParam(), n, cols);
  const std::unique_ptr<Backend> backend = make_cpu_backend({2, "auto", "q8"});
  WeightSource source;
  source.name = "table";
  source.tensor.data = const_cast<std::byte*>(weights.data());
  source.tensor.dtype = GetParam();
  source.tensor.ne = {cols, n, 1, 1};
  const Weight table = backend->import_weight(source);
  const std::vector<int32_t> tokens = {49, 0, 31, 32, 7};
  Rows rows;
  rows.tokens = tokens;
  std::vector<float> out(static_cast<size_t>(cols) * tokens.size()), row(static_cast<size_t>(cols));
  backend->embed(table, rows, matrix_f32(out.data(), cols, rows.size()));
  for (size_t i = 0; i < tokens.size(); ++i) {
    dequantise_row(GetParam(), weights.data() + tokens[i] * row_bytes(GetParam(), cols), row.data(), cols);
    EXPECT_EQ(std::memcmp(row.data(), out.data() + i * row.size(), row.size() * sizeof(float)), 0) << tokens[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Types, StripLinear, testing::ValuesIn(kTypes),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

TEST(StripActivations, AnUnknownNameIsAnError) { EXPECT_THROW(make_cpu_backend({1, "auto", "q7"}), Error); }

}  // namespace
}  // namespace kz
