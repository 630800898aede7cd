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
#include "cpu/workspace.h"

namespace kz {
namespace {

constexpr DType kTypes[] = {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1,  DType::q8_0,
                            DType::q4_k, DType::q5_k, DType::q6_k, DType::iq4_nl};

/// Random blocks with finite scales; with `extreme`, all codes are the largest in magnitude.
std::vector<std::byte> random_weights(DType type, int64_t rows, int64_t cols, bool extreme = false) {
  std::mt19937 random(static_cast<uint32_t>(type) + 1);
  std::vector<std::byte> bytes(static_cast<size_t>(rows * row_bytes(type, cols)));
  for (std::byte& b : bytes) b = extreme ? std::byte{0xff} : static_cast<std::byte>(random());
  if (extreme && (type == DType::q8_0 || type == DType::iq4_nl)) {
    for (std::byte& b : bytes) b = type == DType::q8_0 ? std::byte{0x80} : std::byte{0};  // -128, and -127 by its table
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
  for (const int64_t n_rows : {3, 20}) {
    const Case c{GetParam(), 2 * block(), 33, n_rows};
    const auto weights = random_weights(c.type, c.n_weights, c.cols, true);
    for (const float value : {1.0f, -1.0f}) {
      const std::vector<float> x(static_cast<size_t>(c.cols * c.n_rows), value);
      for (const std::string& isa : tables()) expect_near_exact(c, weights, x, run(isa, 1, c, weights, x));
    }
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

/// Rows [first, first + n) of a batch times one strip.
std::vector<float> product_of_rows(const StripKernels& kernels, DType type, const std::vector<std::byte>& strip,
                                   const Q8Rows& rows, int64_t first, int64_t n) {
  std::vector<float> out(static_cast<size_t>(32 * n));
  StripProductArgs args;
  args.gguf_type = static_cast<int32_t>(type);
  args.strips = strip.data();
  args.stride_bytes = static_cast<int64_t>(strip.size());
  args.n_strips = 1;
  args.cols = 32 * rows.n_blocks;
  args.x = &rows;
  args.first_row = first;
  args.n_rows = n;
  args.out = out.data();
  args.out_stride = 32;
  kernels.product(args);
  return out;
}

TEST_P(StripLinear, RowsMayStartAnywhere) {
  const int64_t cols = 5 * block(), n = 40;
  const auto weights = random_weights(GetParam(), 32, cols);
  std::vector<std::byte> strip(static_cast<size_t>(strips_bytes(GetParam(), 32, cols)));
  pack_strip(GetParam(), weights.data(), 32, cols, strip.data());
  const auto x = random_rows(n, cols);
  Scratch sizes;
  const Q8Batch measured(sizes, cols, n);
  const Arena memory("codes", sizes.used_bytes());
  Scratch scratch(memory.data(), memory.size_bytes());
  const Q8Rows rows = Q8Batch(scratch, cols, n).group(0);
  const StripKernels& scalar = *select_kernels("scalar").strips;
  for (int64_t r = 0; r < n; ++r) scalar.quantise_row(x.data() + r * cols, r, rows);
  const std::vector<float> all = product_of_rows(scalar, GetParam(), strip, rows, 0, n);
  for (const KernelTable& table : isa_kernel_tables()) {
    for (const StripKernels* kernels : {table.strips, table.batches}) {
      if (kernels == nullptr || !table.runs_here()) continue;
      for (const int64_t first : {0, 1, 3, 16, 23}) {
        for (int64_t n_rows = kernels->least_rows; first + n_rows <= n; n_rows += 5) {
          const std::vector<float> some = product_of_rows(*kernels, GetParam(), strip, rows, first, n_rows);
          ASSERT_EQ(std::memcmp(some.data(), all.data() + 32 * first, some.size() * sizeof(float)), 0)
              << table.name << " rows " << first << " + " << n_rows;
        }
      }
    }
  }
}

// So many inputs that the rows make several groups; the last one is smaller than a register tile of some tables.
TEST(StripLinearGroups, EveryTableHasTheSameBits) {
  for (const DType type : {DType::q4_0, DType::q6_k}) {
    const int64_t cols = 8192, n_weights = 33, n_rows = 2 * q8_group_rows(cols) + 5;
    const auto weights = random_weights(type, n_weights, cols);
    const auto x = random_rows(n_rows, cols);
    const std::vector<float> all = run("scalar", 2, {type, cols, n_weights, n_rows}, weights, x);
    for (const std::string& isa : tables()) {
      const std::vector<float> out = run(isa, 2, {type, cols, n_weights, n_rows}, weights, x);
      EXPECT_EQ(std::memcmp(out.data(), all.data(), out.size() * sizeof(float)), 0) << isa;
    }
    for (const int64_t few : {127, 128, 129, 130}) {
      const std::vector<float> some(x.begin(), x.begin() + few * cols);
      const std::vector<float> out = run("auto", 2, {type, cols, n_weights, few}, weights, some);
      EXPECT_EQ(std::memcmp(out.data(), all.data(), out.size() * sizeof(float)), 0) << few;
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

TEST(StripActivations, OddValuesBecomeTheSameCodesInEveryTable) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kTiny = std::numeric_limits<float>::denorm_min(), kLargest = std::numeric_limits<float>::max();
  constexpr int64_t kBlocks = 10;
  std::vector<float> x = random_rows(kBlocks, 32);
  x[3] = kInf, x[32 + 5] = -kInf, x[64 + 17] = kNan, x[96 + 31] = -kNan;
  for (int i = 0; i < 32; ++i) {
    x[128 + static_cast<size_t>(i)] = 0;
    x[160 + static_cast<size_t>(i)] = i % 2 == 0 ? kTiny : -kTiny;
    x[192 + static_cast<size_t>(i)] = i % 3 == 0 ? kLargest : -kLargest;
    x[224 + static_cast<size_t>(i)] = 0.5f * static_cast<float>(i - 16);  // halves: ties
  }
  struct Codes {
    std::vector<int8_t> codes = std::vector<int8_t>(32 * kBlocks);
    std::vector<float> scales = std::vector<float>(kBlocks), scaled_sums = scales;
    std::vector<int32_t> sums = std::vector<int32_t>(2 * kBlocks), starts = std::vector<int32_t>(kBlocks);
  };
  const auto quantise = [&](const StripKernels& kernels) {
    Codes to;
    kernels.quantise_row(
        x.data(), 0,
        {1, kBlocks, to.codes.data(), to.scales.data(), to.sums.data(), to.starts.data(), to.scaled_sums.data()});
    return to;
  };
  const Codes wanted = quantise(*select_kernels("scalar").strips);
  for (const KernelTableInfo& table : cpu_kernel_tables()) {
    if (!table.runs_here) continue;
    const Codes got = quantise(*select_kernels(table.name).strips);
    EXPECT_EQ(got.codes, wanted.codes) << table.name;
    EXPECT_EQ(got.sums, wanted.sums) << table.name;
    EXPECT_EQ(got.starts, wanted.starts) << table.name;
    EXPECT_EQ(std::memcmp(got.scales.data(), wanted.scales.data(), kBlocks * sizeof(float)), 0) << table.name;
    EXPECT_EQ(std::memcmp(got.scaled_sums.data(), wanted.scaled_sums.data(), kBlocks * sizeof(float)), 0) << table.name;
  }
}

TEST(StripActivations, AnUnknownNameIsAnError) { EXPECT_THROW(make_cpu_backend({1, "auto", "q7"}), Error); }

}  // namespace
}  // namespace kz
