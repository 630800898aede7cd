// The promise of class f32: a row's bits do not depend on the kernel table, the threads, the batch, the cut of a span
// into batches, or its neighbours. Everything is compared with the scalar table on one thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/blocks.h"
#include "core/file.h"
#include "core/half.h"
#include "cpu/cpu_backend.h"

namespace kz {
namespace {

WorkLimits test_limits() {
  WorkLimits limits;
  limits.rows = 700;
  limits.heads = 6;
  limits.head_dim = 64;
  limits.positions = 1024;
  limits.features = 2304;
  limits.delta = {2, 6, 40, DeltaForm::token};
  return limits;
}

struct Runner {
  std::string name;
  std::unique_ptr<Backend> backend;
};

std::unique_ptr<Backend> backend_for(std::string_view isa, int n_threads) {
  auto backend = make_cpu_backend({n_threads, std::string(isa)});
  backend->reserve(test_limits());
  return backend;
}

/// Every table that runs here with 1, 2, 3 and 5 threads; the first is scalar with one thread.
const std::vector<Runner>& runners() {
  static const std::vector<Runner> all = [] {
    std::vector<Runner> list;
    list.push_back({"scalar, 1 thread", backend_for("scalar", 1)});
    for (const KernelTableInfo& table : cpu_kernel_tables()) {
      for (const int n_threads : {1, 2, 3, 5}) {
        if (!table.runs_here || (table.name == "scalar" && n_threads == 1)) continue;
        list.push_back({std::string(table.name) + ", " + std::to_string(n_threads) + " threads",
                        backend_for(table.name, n_threads)});
      }
    }
    return list;
  }();
  return all;
}

std::vector<float> random_floats(int64_t n, uint32_t seed, float range = 1.0f) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-range, range);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = value(random);
  return x;
}

::testing::AssertionResult same_bits(const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (std::memcmp(a + i, b + i, sizeof(float)) != 0) {
      return ::testing::AssertionFailure() << "element " << i << " of " << n << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "sizes " << a.size() << " and " << b.size();
  return same_bits(a.data(), b.data(), static_cast<int64_t>(a.size()));
}

// --- products ------------------------------------------------------------------------------------------------------

/// A weight of any loadable type from blocks that the reference quantiser made, in random order.
std::vector<std::byte> random_weight(DType dtype, int64_t cols, int64_t rows, uint32_t seed) {
  const DTypeInfo& info = dtype_info(dtype);
  const int64_t n_blocks = cols / info.block_elements * rows;
  std::vector<std::byte> bytes(static_cast<size_t>(n_blocks * info.block_bytes));
  if (dtype == DType::f32) {
    const std::vector<float> values = random_floats(cols * rows, seed);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  const std::string source =
      read_text_file(std::string(KZ_TEST_DATA) + "/blocks/" + std::string(info.name) + ".quantised.bin");
  std::mt19937 random(seed);
  std::uniform_int_distribution<size_t> pick(0, source.size() / static_cast<size_t>(info.block_bytes) - 1);
  for (int64_t b = 0; b < n_blocks; ++b) {
    std::memcpy(bytes.data() + b * info.block_bytes,
                source.data() + pick(random) * static_cast<size_t>(info.block_bytes),
                static_cast<size_t>(info.block_bytes));
  }
  return bytes;
}

struct WeightCase {
  DType dtype;
  int64_t cols, rows;
};

/// Odd sizes where the type has no block; beyond kProductColumns; fewer and more rows than a panel.
std::vector<WeightCase> weight_cases() {
  std::vector<WeightCase> cases;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const auto& [cols, rows] : {std::pair<int64_t, int64_t>{1, 1}, {17, 5}, {63, 70}, {1101, 13}}) {
      cases.push_back({dtype, cols, rows});
    }
  }
  for (const DType dtype :
       {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0, DType::iq4_nl, DType::mxfp4}) {
    cases.push_back({dtype, 32, 67});
    cases.push_back({dtype, 1120, 11});
  }
  for (const DType dtype : {DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k, DType::iq4_xs}) {
    cases.push_back({dtype, 256, 67});
    cases.push_back({dtype, 1280, 9});
  }
  return cases;
}

TEST(Bits, ProductsOfEveryTypeTableThreadsAndBatch) {
  for (const WeightCase& c : weight_cases()) {
    const std::string type(dtype_name(c.dtype));
    const std::vector<std::byte> bytes = random_weight(c.dtype, c.cols, c.rows, 1);
    Tensor tensor;
    tensor.data = const_cast<std::byte*>(bytes.data());
    tensor.dtype = c.dtype;
    tensor.ne = {c.cols, c.rows, 1, 1};
    constexpr int64_t kMostRows = 65;
    std::vector<float> x = random_floats(c.cols * kMostRows, 2), bias = random_floats(c.rows, 3);
    std::vector<float> expected(static_cast<size_t>(c.rows * kMostRows));
    for (int64_t r = 0; r < kMostRows; ++r) {  // one row at a time
      Backend& scalar = *runners()[0].backend;
      const Weight w = scalar.import_weight({"w", tensor, Arithmetic::automatic});
      scalar.linear(matrix_f32(x.data() + r * c.cols, c.cols, 1), w,
                    matrix_f32(expected.data() + r * c.rows, c.rows, 1), vector_f32(bias.data(), c.rows));
    }
    std::vector<float> row(static_cast<size_t>(c.cols));
    for (int64_t n = 0; n < c.rows; ++n) {  // and they are the right numbers
      dequantise_row(c.dtype, bytes.data() + n * row_bytes(c.dtype, c.cols), row.data(), c.cols);
      double sum = static_cast<double>(bias[static_cast<size_t>(n)]), size = std::abs(sum);
      for (int64_t k = 0; k < c.cols; ++k) {
        const double term =
            static_cast<double>(row[static_cast<size_t>(k)]) * static_cast<double>(x[static_cast<size_t>(k)]);
        sum += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(static_cast<double>(expected[static_cast<size_t>(n)]), sum, 1e-6 * size + 1e-30)
          << type << " row " << n;
    }
    for (const Runner& runner : runners()) {
      const Weight w = runner.backend->import_weight({"w", tensor, Arithmetic::f32});
      for (const int64_t n_rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 33, 65}) {
        std::vector<float> out(static_cast<size_t>(c.rows * n_rows)), half(out.size());
        const Tensor input = matrix_f32(x.data(), c.cols, n_rows), plain_bias = vector_f32(bias.data(), c.rows);
        const Product products[] = {{&w, matrix_f32(out.data(), c.rows, n_rows), plain_bias},
                                    {&w, matrix_f32(half.data(), c.rows, n_rows), plain_bias}};
        runner.backend->linear_many(input, products);
        EXPECT_TRUE(same_bits(out.data(), expected.data(), c.rows * n_rows))
            << runner.name << ", " << type << " " << c.cols << " x " << c.rows << ", " << n_rows << " rows";
        EXPECT_TRUE(same_bits(half.data(), out.data(), c.rows * n_rows)) << "second product of linear_many";
      }
    }
  }
}

TEST(Bits, WeightsAtAnyAddress) {
  constexpr int64_t kCols = 33, kRows = 10;
  const std::vector<std::byte> bytes = random_weight(DType::f32, kCols, kRows, 4);
  std::vector<std::byte> moved(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), moved.begin() + 1);
  std::vector<float> x = random_floats(kCols * 3, 5), a(kRows * 3), b(kRows * 3);
  Backend& backend = *runners().back().backend;
  for (const auto& [data, out] : {std::pair{bytes.data(), a.data()}, {moved.data() + 1, b.data()}}) {
    Tensor tensor;
    tensor.data = const_cast<std::byte*>(data);
    tensor.ne = {kCols, kRows, 1, 1};
    const Weight w = backend.import_weight({"w", tensor, Arithmetic::automatic});
    backend.linear(matrix_f32(x.data(), kCols, 3), w, matrix_f32(out, kRows, 3));
  }
  EXPECT_TRUE(same_bits(a, b));
}

TEST(Bits, ANeighbourThatIsNotANumberChangesNothing) {
  constexpr int64_t kCols = 33, kRows = 10;
  const std::vector<std::byte> bytes = random_weight(DType::f32, kCols, kRows, 6);
  Tensor tensor;
  tensor.data = const_cast<std::byte*>(bytes.data());
  tensor.ne = {kCols, kRows, 1, 1};
  std::vector<float> x = random_floats(kCols * 2, 7), good(kRows), out(kRows * 2);
  for (const Runner& runner : runners()) {
    const Weight w = runner.backend->import_weight({"w", tensor, Arithmetic::automatic});
    runner.backend->linear(matrix_f32(x.data(), kCols, 1), w, matrix_f32(good.data(), kRows, 1));
    std::vector<float> bad = x;
    std::fill(bad.begin() + kCols, bad.end(), NAN);
    runner.backend->linear(matrix_f32(bad.data(), kCols, 2), w, matrix_f32(out.data(), kRows, 2));
    EXPECT_TRUE(same_bits(out.data(), good.data(), kRows)) << runner.name;
    EXPECT_TRUE(std::isnan(out[kRows])) << runner.name;
  }
}

// --- sequences -----------------------------------------------------------------------------------------------------

/// Runs body(state, first row, number of rows, rows) over `total` rows in pieces of the given size.
using Piece = std::function<void(const Rows& rows, int64_t first)>;

void in_pieces(State& state, int64_t total, const std::vector<int64_t>& sizes, DeltaForm form, const Piece& body) {
  std::vector<int32_t> tokens(static_cast<size_t>(total));
  int64_t first = 0;
  for (size_t i = 0; first < total; ++i) {
    const int64_t n = std::min(sizes[i % sizes.size()], total - first);
    state.begin(n);
    const Span span{&state, state.position(), 0, n};
    Rows rows;
    rows.spans = {&span, 1};
    rows.tokens = {tokens.data(), static_cast<size_t>(n)};
    rows.delta_form = form;
    body(rows, first);
    state.commit(n);
    first += n;
  }
}

struct AttentionCase {
  DType type;
  int64_t key_dim, value_dim, kv_heads, heads;
};

class AttentionBits : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionBits, AnyCutTableAndThreads) {
  constexpr int64_t kTotal = 523;  // three KV blocks
  const AttentionCase c = GetParam();
  StateLayout layout;
  layout.attention = {{c.kv_heads, c.key_dim, c.value_dim}};
  const std::vector<float> q = random_floats(kTotal * c.heads * c.key_dim, 11, 3.0f);
  const std::vector<float> k = random_floats(kTotal * c.kv_heads * c.key_dim, 12);
  const std::vector<float> v = random_floats(kTotal * c.kv_heads * c.value_dim, 13);
  const auto run = [&](Backend& backend, const std::vector<int64_t>& sizes) {
    auto pool = std::make_shared<KvPool>(layout, 3, c.type, c.type);
    State state(layout, pool, kTotal);
    std::vector<float> out(static_cast<size_t>(kTotal * c.heads * c.value_dim));
    const auto view = [](const std::vector<float>& data, int64_t dim, int64_t heads, int64_t first, int64_t n) {
      float* at = const_cast<float*>(data.data()) + first * dim * heads;
      return heads_view(matrix_f32(at, dim * heads, n), 0, dim, heads, dim);
    };
    in_pieces(state, kTotal, sizes, DeltaForm::token, [&](const Rows& rows, int64_t first) {
      const int64_t n = rows.size();
      backend.append(view(k, c.key_dim, c.kv_heads, first, n), view(v, c.value_dim, c.kv_heads, first, n), 0, rows);
      backend.attention(view(q, c.key_dim, c.heads, first, n), 0.25f, 0, rows,
                        view(out, c.value_dim, c.heads, first, n));
    });
    return out;
  };
  const std::vector<float> expected = run(*runners()[0].backend, {kTotal});
  for (const float x : expected) ASSERT_TRUE(std::isfinite(x));
  EXPECT_TRUE(same_bits(run(*runners()[0].backend, {1}), expected)) << "row by row";
  for (const Runner& runner : runners()) {
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{kTotal}, {64}, {250, 1, 2, 3, 4, 5, 200, 7}}) {
      EXPECT_TRUE(same_bits(run(*runner.backend, sizes), expected)) << runner.name << ", pieces from " << sizes[0];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, AttentionBits,
                         ::testing::Values(AttentionCase{DType::f32, 20, 36, 2, 4},
                                           AttentionCase{DType::f16, 33, 17, 3, 3},
                                           AttentionCase{DType::q8_0, 64, 32, 1, 5}),
                         [](const auto& instance) { return std::string(dtype_name(instance.param.type)); });

struct DeltaRun {
  std::vector<float> out, state, history;
};

/// The convolution of 300 channels and the delta rule over the same rows.
DeltaRun run_delta(Backend& backend, const std::vector<int64_t>& sizes, DeltaForm form, int64_t size) {
  constexpr int64_t kTotal = 131, kKeyHeads = 2, kHeads = 6, kChannels = 300;
  StateLayout layout;
  layout.delta = {{kHeads, size, kChannels, 3}};
  auto pool = std::make_shared<KvPool>(layout, 1, DType::f32, DType::f32);
  State state(layout, pool, kTotal);
  std::vector<float> q = random_floats(kTotal * kKeyHeads * size, 21), k = random_floats(kTotal * kKeyHeads * size, 22);
  std::vector<float> v = random_floats(kTotal * kHeads * size, 23), g = random_floats(kTotal * kHeads, 24);
  std::vector<float> beta = random_floats(kTotal * kHeads, 25, 4.0f), x = random_floats(kTotal * kChannels, 26);
  std::vector<float> taps = random_floats(4 * kChannels, 27);
  for (float& decay : g) decay = -std::abs(decay);
  g[7] = -316.0f;  // measured in real models: e^-g would not be finite
  std::vector<float> out(v.size());
  in_pieces(state, kTotal, sizes, form, [&](const Rows& rows, int64_t first) {
    const int64_t n = rows.size();
    const auto view = [&](std::vector<float>& data, int64_t heads) {
      return heads_view(matrix_f32(data.data() + first * heads * size, heads * size, n), 0, size, heads, size);
    };
    backend.causal_conv_silu(matrix_f32(x.data() + first * kChannels, kChannels, n),
                             matrix_f32(taps.data(), 4, kChannels), 0, rows);
    backend.delta_rule(view(q, kKeyHeads), view(k, kKeyHeads), view(v, kHeads),
                       matrix_f32(g.data() + first * kHeads, kHeads, n),
                       matrix_f32(beta.data() + first * kHeads, kHeads, n), {kKeyHeads, kHeads, size, form}, 0, rows,
                       view(out, kHeads));
  });
  DeltaRun result;
  result.out = out;
  result.out.insert(result.out.end(), x.begin(), x.end());
  result.state.assign(state.delta_state(0), state.delta_state(0) + kHeads * size * size);
  result.history.assign(state.conv_history(0), state.conv_history(0) + 3 * kChannels);
  return result;
}

void expect_same(const DeltaRun& a, const DeltaRun& b, const std::string& what) {
  EXPECT_TRUE(same_bits(a.out, b.out)) << what;
  EXPECT_TRUE(same_bits(a.state, b.state)) << what << ", state";
  EXPECT_TRUE(same_bits(a.history, b.history)) << what << ", convolution history";
}

TEST(Bits, DeltaRuleByTokensInAnyCut) {
  for (const int64_t size : {24, 40}) {
    const DeltaRun expected = run_delta(*runners()[0].backend, {131}, DeltaForm::token, size);
    for (const float x : expected.out) ASSERT_TRUE(std::isfinite(x));
    for (const Runner& runner : runners()) {
      for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{131}, {1}, {2, 7}, {64}}) {
        expect_same(run_delta(*runner.backend, sizes, DeltaForm::token, size), expected,
                    runner.name + ", pieces from " + std::to_string(sizes[0]));
      }
    }
  }
}

TEST(Bits, DeltaRuleByChunksInAnyTable) {
  const DeltaRun tokens = run_delta(*runners()[0].backend, {131}, DeltaForm::token, 40);
  const DeltaRun expected = run_delta(*runners()[0].backend, {131}, DeltaForm::chunked, 40);
  double worst = 0, largest = 0;
  for (size_t i = 0; i < tokens.out.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(tokens.out[i]) - static_cast<double>(expected.out[i])));
    largest = std::max(largest, std::abs(static_cast<double>(tokens.out[i])));
  }
  EXPECT_LT(worst, 2e-6 * largest);
  EXPECT_GT(worst, 0.0) << "the chunked form did not run";
  for (const Runner& runner : runners()) {
    expect_same(run_delta(*runner.backend, {131}, DeltaForm::chunked, 40), expected, runner.name);
  }
}

TEST(Bits, ElementwiseVerbs) {
  constexpr int64_t kDim = 70, kHeads = 5, kRows = 40;
  const std::vector<float> x = random_floats(kDim * kHeads * kRows, 31), y = random_floats(kDim * kHeads * kRows, 32);
  const std::vector<float> w = random_floats(kDim, 33);
  RopeTable rope;
  for (int i = 0; i < 21; ++i) rope.frequency.push_back(std::pow(0.7, i));
  const auto run = [&](Backend& backend) {
    std::vector<float> all, a = x, b = y, weight = w;
    const Tensor ta = heads_view(matrix_f32(a.data(), kDim * kHeads, kRows), 0, kDim, kHeads, kDim);
    const Tensor tb = heads_view(matrix_f32(b.data(), kDim * kHeads, kRows), 0, kDim, kHeads, kDim);
    const auto keep = [&] { all.insert(all.end(), a.begin(), a.end()); };
    backend.rms_norm(ta, vector_f32(weight.data(), kDim), 1e-6f, ta);
    keep();
    backend.norm_silu_gate(ta, vector_f32(weight.data(), kDim), 1e-6f, tb);
    keep();
    backend.sigmoid_gate(ta, tb);
    keep();
    backend.swiglu(ta, tb, ta);
    keep();
    backend.add(ta, tb);
    std::vector<float> angles(42 * kRows);
    std::vector<int32_t> tokens(kRows);
    const Span span{nullptr, 1000, 0, kRows};
    Rows rows;
    rows.spans = {&span, 1};
    rows.tokens = tokens;
    backend.rope_angles(rope, rows, matrix_f32(angles.data(), 42, kRows));
    for (const bool adjacent : {false, true}) {
      RopeTable table = rope;
      table.adjacent = adjacent;
      backend.rope(ta, table, matrix_f32(angles.data(), 42, kRows));
      keep();
    }
    backend.decay(matrix_f32(a.data(), kDim, kRows), vector_f32(weight.data(), kDim), vector_f32(b.data(), kDim));
    keep();
    return all;
  };
  const std::vector<float> expected = run(*runners()[0].backend);
  for (const Runner& runner : runners()) EXPECT_TRUE(same_bits(run(*runner.backend), expected)) << runner.name;
}

}  // namespace
}  // namespace kz
