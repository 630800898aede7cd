// Every kernel of every table that runs here: the bits of the scalar table, and the right numbers.
#include "cpu/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/blocks.h"
#include "core/file.h"
#include "core/half.h"
#include "cpu/cpu_backend.h"
#include "cpu/kernel_tables.h"

namespace kz {
namespace {

std::vector<float> random_floats(int64_t n, uint32_t seed, float range = 2.0f) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> value(-range, range);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = value(random);
  return x;
}

::testing::AssertionResult same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << "sizes " << a.size() << " and " << b.size();
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) {
      return ::testing::AssertionFailure() << "element " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

/// Runs a function with every table that runs here; results must have the bits of the scalar table's.
void expect_same_in_all_tables(const std::function<std::vector<float>(const Kernels&)>& run) {
  const std::vector<float> expected = run(*select_kernels("scalar").kernels);
  for (const KernelTableInfo& table : cpu_kernel_tables()) {
    if (!table.runs_here) continue;
    EXPECT_TRUE(same_bits(run(*select_kernels(table.name).kernels), expected)) << table.name;
  }
}

constexpr int64_t kLengths[] = {1, 2, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 257};

double plain_dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

TEST(Kernels, ProductHasTheOrderOfArithmeticMd) {
  for (const int64_t k : {1L, 16L, 33L, 1500L}) {
    const std::vector<float> w = random_floats(k, 1), x = random_floats(k, 2);
    float lanes[kLanes] = {};
    for (int64_t i = 0; i < k; ++i) {
      const float term = w[static_cast<size_t>(i)] * x[static_cast<size_t>(i)];
      lanes[i % kLanes] = lanes[i % kLanes] + term;
    }
    for (int64_t half = kLanes / 2; half > 0; half /= 2) {
      for (int64_t i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
    }
    expect_same_in_all_tables([&](const Kernels& kernels) {
      std::vector<float> out(1), work(static_cast<size_t>(product_lane_floats(1, k)));
      kernels.product({w.data(), k, 1, x.data(), k, 1, k, nullptr, out.data(), 1, work.data()});
      EXPECT_EQ(out[0], lanes[0]) << kernels.name << " k " << k;
      return out;
    });
  }
}

TEST(Kernels, ProductOfAnyShape) {
  for (const int64_t k : {1L, 40L, 129L, 1100L, 2100L}) {
    for (const int64_t n_weights : {1L, 2L, 3L, 4L, 5L, 11L}) {
      for (const int64_t n_rows : {1L, 2L, 3L, 4L, 5L, 7L, 9L}) {
        const int64_t w_stride = k + 3, x_stride = k + 1, out_stride = n_weights + 2;
        const std::vector<float> w = random_floats(w_stride * n_weights, 3), x = random_floats(x_stride * n_rows, 4);
        const std::vector<float> bias = random_floats(n_weights, 5);
        expect_same_in_all_tables([&](const Kernels& kernels) {
          std::vector<float> out(static_cast<size_t>(out_stride * n_rows), 7.0f);
          std::vector<float> work(static_cast<size_t>(product_lane_floats(n_weights, k)));
          kernels.product({w.data(), w_stride, n_weights, x.data(), x_stride, n_rows, k, bias.data(), out.data(),
                           out_stride, work.data()});
          for (int64_t r = 0; r < n_rows; ++r) {
            for (int64_t n = 0; n < n_weights; ++n) {
              const double right =
                  plain_dot(&w[static_cast<size_t>(n * w_stride)], &x[static_cast<size_t>(r * x_stride)], k) +
                  static_cast<double>(bias[static_cast<size_t>(n)]);
              EXPECT_NEAR(out[static_cast<size_t>(r * out_stride + n)], right, 1e-6 * static_cast<double>(k + 8));
            }
            for (int64_t pad = n_weights; pad < out_stride; ++pad) {
              EXPECT_EQ(out[static_cast<size_t>(r * out_stride + pad)], 7.0f) << "wrote beside the output";
            }
          }
          return out;
        });
      }
    }
  }
}

TEST(Kernels, WeightedSumContinuesAndCanBeCut) {
  for (const int64_t dim : {1L, 16L, 20L, 33L, 64L, 129L}) {
    for (const int64_t n_rows : {1L, 2L, 3L, 4L, 5L, 9L}) {
      constexpr int64_t kN = 37, kCut = 20;
      const std::vector<float> weights = random_floats(n_rows * kN, 6), values = random_floats(kN * (dim + 1), 7);
      const std::vector<float> start = random_floats(n_rows * dim, 8);
      expect_same_in_all_tables([&](const Kernels& kernels) {
        std::vector<float> whole = start, cut = start;
        kernels.weighted_sum({weights.data(), kN, values.data(), dim + 1, kN, dim, whole.data(), dim, n_rows});
        kernels.weighted_sum({weights.data(), kN, values.data(), dim + 1, kCut, dim, cut.data(), dim, n_rows});
        kernels.weighted_sum({weights.data() + kCut, kN, values.data() + kCut * (dim + 1), dim + 1, kN - kCut, dim,
                              cut.data(), dim, n_rows});
        EXPECT_TRUE(same_bits(whole, cut)) << kernels.name;
        for (int64_t r = 0; r < n_rows; ++r) {
          for (int64_t j = 0; j < dim; ++j) {
            double right = static_cast<double>(start[static_cast<size_t>(r * dim + j)]);
            for (int64_t u = 0; u < kN; ++u) {
              right += static_cast<double>(weights[static_cast<size_t>(r * kN + u)]) *
                       static_cast<double>(values[static_cast<size_t>(u * (dim + 1) + j)]);
            }
            EXPECT_NEAR(whole[static_cast<size_t>(r * dim + j)], right, 1e-4);
          }
        }
        return whole;
      });
    }
  }
}

TEST(Kernels, StoredRowsGiveTheBitsOfFloatRows) {
  constexpr int64_t kStride = 70;  // of scores and weights
  for (const int32_t type : {0, 1, 8}) {
    for (const int64_t dim : {32L, 96L, 128L, 256L}) {
      for (const int64_t n : {1L, 3L, 4L, 6L, 65L}) {
        for (const int64_t n_queries : {1L, 2L, 3L, 4L, 7L}) {
          const DType dtype = find_dtype(type)->dtype;
          const int64_t bytes = row_bytes(dtype, dim);
          const std::vector<float> rows = random_floats(n * dim, 24), queries = random_floats(n_queries * dim, 25);
          const std::vector<float> weights = random_floats(n_queries * kStride, 26);
          std::vector<std::byte> stored(static_cast<size_t>(n * bytes));
          std::vector<float> plain(rows.size());
          quantise_row(dtype, rows.data(), stored.data(), n * dim);
          dequantise_row(dtype, stored.data(), plain.data(), n * dim);
          expect_same_in_all_tables([&](const Kernels& kernels) {
            std::vector<float> scores(static_cast<size_t>(n_queries * kStride)), right = scores;
            kernels.product(
                {plain.data(), dim, n, queries.data(), dim, n_queries, dim, nullptr, right.data(), kStride, nullptr});
            kernels.stored_scores(type)(
                {stored.data(), bytes, n, dim, queries.data(), n_queries, scores.data(), kStride});
            EXPECT_TRUE(same_bits(scores, right)) << kernels.name << " " << dtype_name(dtype) << " " << dim << " " << n;
            std::vector<float> mixed = queries, expected = queries;
            kernels.weighted_sum({weights.data(), kStride, plain.data(), dim, n, dim, expected.data(), dim, n_queries});
            kernels.stored_mix(type)(
                {stored.data(), bytes, n, dim, weights.data(), kStride, n_queries, mixed.data(), dim});
            EXPECT_TRUE(same_bits(mixed, expected)) << kernels.name << " " << dtype_name(dtype) << " " << dim;
            mixed.insert(mixed.end(), scores.begin(), scores.end());
            return mixed;
          });
        }
      }
    }
  }
  EXPECT_EQ(select_kernels("scalar").kernels->stored_mix(2), nullptr);
}

TEST(Kernels, ExponentialAtTheEndsOfItsRange) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {-infinity, -1e30f, -100.0f, -87.31f, -87.29f, -1e-8f,   0.0f,
                                1e-8f,     88.0f,  88.3f,   88.5f,   1e30f,   infinity, std::nanf("")};
  for (const KernelTableInfo& table : cpu_kernel_tables()) {
    if (!table.runs_here) continue;
    std::vector<float> y(x.size());
    select_kernels(table.name).kernels->exponential(x.data(), y.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(y[i], 0.0f) << table.name << " " << x[i];  // no denormals
    EXPECT_EQ(y[6], 1.0f);
    for (const size_t i : {4U, 5U, 7U, 8U, 9U}) {
      EXPECT_NEAR(static_cast<double>(y[i]) / std::exp(static_cast<double>(x[i])), 1.0, 2.4e-7) << x[i];
    }
    for (const size_t i : {10U, 11U, 12U}) EXPECT_TRUE(y[i] > 2.3e38f && y[i] < infinity) << table.name << " " << x[i];
    EXPECT_TRUE(std::isnan(y[13])) << table.name;
  }
}

TEST(Kernels, ExponentialOfPositiveNumbersIsRightWithinTwoUnits) {
  std::vector<float> x(40001), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = 88.3f * static_cast<float>(i) / 40000.0f;
  expect_same_in_all_tables([&](const Kernels& kernels) {
    kernels.exponential(x.data(), y.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(y[i]) / std::exp(static_cast<double>(x[i])) - 1.0));
    }
    EXPECT_LT(worst, 2.4e-7) << kernels.name;
    return y;
  });
}

TEST(Kernels, ExponentialIsRightWithinTwoUnits) {
  std::vector<float> scores(40001);
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = -87.25f * static_cast<float>(i) / 40000.0f;
  expect_same_in_all_tables([&](const Kernels& kernels) {
    std::vector<float> weights = scores;
    const SoftmaxPart part = kernels.softmax(weights.data(), static_cast<int64_t>(weights.size()), 1.0f);
    EXPECT_EQ(part.largest, 0.0f);
    double total = 0, worst = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      const double right = std::exp(static_cast<double>(scores[i]));
      worst = std::max(worst, std::abs(static_cast<double>(weights[i]) / right - 1.0));
      total += right;
    }
    EXPECT_LT(worst, 2.4e-7) << kernels.name;
    EXPECT_NEAR(static_cast<double>(part.sum) / total, 1.0, 2e-6);
    return weights;
  });
}

TEST(Kernels, SoftmaxAndMergeEqualOneSoftmax) {
  for (const int64_t n : kLengths) {
    const std::vector<float> scores = random_floats(2 * n, 9, 20.0f);
    expect_same_in_all_tables([&](const Kernels& kernels) {
      std::vector<float> w = scores;
      const SoftmaxPart a = kernels.softmax(w.data(), n, 0.5f), b = kernels.softmax(w.data() + n, n, 0.5f);
      std::vector<float> out(w.begin(), w.begin() + n), later(w.begin() + n, w.end());  // any vectors will do
      const SoftmaxPart both = kernels.merge(out.data(), a, later.data(), b, n);
      const double largest = 0.5 * static_cast<double>(*std::max_element(scores.begin(), scores.end()));
      double sum = 0;
      for (const float s : scores) sum += std::exp(0.5 * static_cast<double>(s) - largest);
      EXPECT_NEAR(static_cast<double>(both.largest), largest, 1e-6);
      EXPECT_NEAR(static_cast<double>(both.sum) / sum, 1.0, 4e-6);
      const double expected = std::exp(0.5 * static_cast<double>(scores[0]) - largest) +
                              std::exp(0.5 * static_cast<double>(scores[static_cast<size_t>(n)]) - largest);
      EXPECT_NEAR(static_cast<double>(out[0]), expected, 4e-6);
      kernels.divide(out.data(), both.sum, out.data(), n);
      out.push_back(both.sum);
      return out;
    });
  }
}

TEST(Kernels, RowsOfAnyLength) {
  for (const int64_t n : kLengths) {
    const std::vector<float> x = random_floats(n, 10), y = random_floats(n, 11, 30.0f), w = random_floats(n, 12);
    using Run = std::function<void(const Kernels&, std::vector<float>&)>;
    using Right = std::function<double(double x, double y, double w)>;
    const auto sigmoid = [](double v) { return 1.0 / (1.0 + std::exp(-v)); };
    const std::vector<std::pair<Run, Right>> cases = {
        {[&](const Kernels& k, std::vector<float>& v) { k.add(v.data(), y.data(), n); },
         [](double a, double b, double) { return a + b; }},
        {[&](const Kernels& k, std::vector<float>& v) { k.scale(v.data(), 1.5f, w.data(), v.data(), n); },
         [](double a, double, double c) { return 1.5 * a * c; }},
        {[&](const Kernels& k, std::vector<float>& v) { k.scale(v.data(), 1.5f, nullptr, v.data(), n); },
         [](double a, double, double) { return 1.5 * a; }},
        {[&](const Kernels& k, std::vector<float>& v) { k.sigmoid_gate(v.data(), y.data(), n); },
         [&](double a, double b, double) { return a * sigmoid(b); }},
        {[&](const Kernels& k, std::vector<float>& v) { k.swiglu(y.data(), v.data(), v.data(), n); },
         [&](double a, double b, double) { return b * sigmoid(b) * a; }},
        {[&](const Kernels& k, std::vector<float>& v) { k.scale_silu_gate(v.data(), 0.5f, w.data(), y.data(), n); },
         [&](double a, double b, double c) { return 0.5 * a * c * b * sigmoid(b); }},
    };
    for (const auto& [run, right] : cases) {
      expect_same_in_all_tables([&, &run_one = run, &right_one = right](const Kernels& kernels) {
        std::vector<float> out = x;
        run_one(kernels, out);
        for (size_t i = 0; i < out.size(); ++i) {
          const double expected =
              right_one(static_cast<double>(x[i]), static_cast<double>(y[i]), static_cast<double>(w[i]));
          EXPECT_NEAR(static_cast<double>(out[i]), expected, 1e-6 * std::abs(expected) + 1e-30) << kernels.name;
        }
        return out;
      });
    }
  }
}

TEST(Kernels, GatesStayFiniteAtTheEnds) {
  const std::vector<float> gate = {-1e30f, -200.0f, -88.0f, 0.0f, 88.0f, 200.0f, 1e30f};
  expect_same_in_all_tables([&](const Kernels& kernels) {
    std::vector<float> ones(gate.size(), 1.0f), out(gate.size());
    kernels.swiglu(gate.data(), ones.data(), out.data(), static_cast<int64_t>(gate.size()));
    kernels.sigmoid_gate(ones.data(), gate.data(), static_cast<int64_t>(gate.size()));
    EXPECT_NEAR(out[1], 0.0f, 1e-30);
    EXPECT_EQ(out[3], 0.0f);
    EXPECT_EQ(out[5], 200.0f);
    EXPECT_EQ(out[6], 1e30f);
    EXPECT_NEAR(ones[0], 0.0f, 1e-37);
    EXPECT_EQ(ones[3], 0.5f);
    EXPECT_EQ(ones[6], 1.0f);
    out.insert(out.end(), ones.begin(), ones.end());
    return out;
  });
}

TEST(Kernels, NotANumberStaysOne) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const KernelTableInfo& table : cpu_kernel_tables()) {
    if (!table.runs_here) continue;
    const Kernels& kernels = *select_kernels(table.name).kernels;
    std::vector<float> gate = {0, nan, 1}, out = {1, 1, 1};
    kernels.sigmoid_gate(out.data(), gate.data(), 3);
    EXPECT_TRUE(std::isnan(out[1])) << table.name;
    EXPECT_FALSE(std::isnan(out[0]) || std::isnan(out[2])) << table.name;
  }
}

TEST(Kernels, SumOfSquaresInDouble) {
  for (const int64_t n : kLengths) {
    const std::vector<float> x = random_floats(n, 13, 1e18f);
    expect_same_in_all_tables([&](const Kernels& kernels) {
      const double sum = kernels.sum_of_squares(x.data(), n), right = plain_dot(x.data(), x.data(), n);
      EXPECT_NEAR(sum / right, 1.0, 1e-14);
      std::vector<float> bits(2);
      std::memcpy(bits.data(), &sum, sizeof(sum));
      return bits;
    });
  }
}

TEST(Kernels, RotateTurnsPairs) {
  for (const int64_t n : kLengths) {
    const std::vector<float> a = random_floats(n, 14), b = random_floats(n, 15);
    const std::vector<float> cos = random_floats(n, 16, 1.0f), sin = random_floats(n, 17, 1.0f);
    expect_same_in_all_tables([&](const Kernels& kernels) {
      std::vector<float> x = a, y = b;
      kernels.rotate(x.data(), y.data(), cos.data(), sin.data(), n);
      for (size_t i = 0; i < x.size(); ++i) {
        EXPECT_NEAR(x[i], a[i] * cos[i] - b[i] * sin[i], 1e-6f);
        EXPECT_NEAR(y[i], a[i] * sin[i] + b[i] * cos[i], 1e-6f);
      }
      x.insert(x.end(), y.begin(), y.end());
      return x;
    });
  }
}

TEST(Kernels, HalfFloatsOfEveryValue) {
  std::vector<uint16_t> halves;
  for (uint32_t h = 0; h < 0x10000; ++h) {
    if ((h & 0x7fff) <= 0x7c00) halves.push_back(static_cast<uint16_t>(h));  // not a number has no single bit pattern
  }
  const auto n = static_cast<int64_t>(halves.size());
  expect_same_in_all_tables([&](const Kernels& kernels) {
    std::vector<float> out(halves.size());
    kernels.dequantise(1)(reinterpret_cast<const std::byte*>(halves.data()), out.data(), n);
    for (size_t i = 0; i < halves.size(); ++i) {
      const float right = f16_to_f32(halves[i]);
      EXPECT_EQ(std::memcmp(&out[i], &right, 4), 0) << "half " << halves[i] << ": " << out[i];
    }
    return out;
  });
}

TEST(Kernels, DequantiseHasTheBitsOfCore) {
  int n_types = 0;
  for (const int32_t id : {1, 2, 3, 6, 7, 8, 12, 13, 14, 30}) {
    const DTypeInfo& info = *find_dtype(id);
    const std::string blocks =
        read_text_file(std::string(KZ_TEST_DATA) + "/blocks/" + std::string(info.name) + ".quantised.bin");
    const int64_t n = static_cast<int64_t>(blocks.size()) / info.block_bytes * info.block_elements;
    ASSERT_GE(n, 3072) << info.name;
    const auto* bytes = reinterpret_cast<const std::byte*>(blocks.data());
    std::vector<float> expected(static_cast<size_t>(n));
    dequantise_row(info.dtype, bytes, expected.data(), n);
    expect_same_in_all_tables([&](const Kernels& kernels) {
      std::vector<float> out(expected.size());
      const DequantiseKernel kernel = kernels.dequantise(id);
      EXPECT_NE(kernel, nullptr);
      kernel(bytes, out.data(), n);
      EXPECT_TRUE(same_bits(out, expected)) << kernels.name << " " << info.name;
      return out;
    });
    ++n_types;
  }
  EXPECT_EQ(n_types, 10);
  EXPECT_EQ(select_kernels("scalar").kernels->dequantise(static_cast<int32_t>(DType::q2_k)), nullptr);
}

TEST(Kernels, ConvolutionAddsTapsAndGates) {
  for (const int64_t n : kLengths) {
    const std::vector<float> inputs = random_floats(4 * n, 18), weights = random_floats(4 * n, 19);
    expect_same_in_all_tables([&](const Kernels& kernels) {
      std::vector<float> newest(inputs.end() - n, inputs.end());  // written in place
      const float* rows[4] = {inputs.data(), inputs.data() + n, inputs.data() + 2 * n, newest.data()};
      kernels.conv_silu({rows, weights.data(), 4, n, newest.data()});
      for (int64_t c = 0; c < n; ++c) {
        double sum = 0;
        for (int64_t t = 0; t < 4; ++t) {
          sum += static_cast<double>(inputs[static_cast<size_t>(t * n + c)]) *
                 static_cast<double>(weights[static_cast<size_t>(t * n + c)]);
        }
        EXPECT_NEAR(static_cast<double>(newest[static_cast<size_t>(c)]), sum / (1 + std::exp(-sum)), 4e-6);
      }
      return newest;
    });
  }
}

TEST(Kernels, DeltaStepsInAnyCut) {
  for (const int64_t size : {1L, 20L, 32L, 128L}) {
    constexpr int64_t kTokens = 5;
    for (const int64_t n_values : {1L, 3L, 4L, 6L, 9L}) {
      const std::vector<float> q = random_floats(kTokens * size, 20, 0.3f), k = random_floats(kTokens * size, 21, 0.3f);
      const std::vector<float> v = random_floats(kTokens * n_values, 22), start = random_floats(n_values * size, 23);
      const std::vector<float> decay = {0.9f, 0.5f, 1.0f, 0.0f, 0.99f}, strength = {0.1f, 0.9f, 0.5f, 1.0f, 0.3f};
      std::vector<float> kq;
      for (int64_t t = 0; t < kTokens; ++t) {
        kq.push_back(
            static_cast<float>(plain_dot(&k[static_cast<size_t>(t * size)], &q[static_cast<size_t>(t * size)], size)));
      }
      expect_same_in_all_tables([&](const Kernels& kernels) {
        std::vector<float> state = start, out(v.size());
        DeltaArgs a{state.data(), n_values,   size,      kTokens, q.data(),     k.data(),        size,
                    v.data(),     n_values,   kq.data(), 1,       decay.data(), strength.data(), 1,
                    0.25f,        out.data(), n_values};
        kernels.delta(a);
        std::vector<float> cut_state = start, cut_out(v.size());
        for (int64_t t = 0; t < kTokens; ++t) {  // token by token, value by value
          for (int64_t j = 0; j < n_values; ++j) {
            kernels.delta({&cut_state[static_cast<size_t>(j * size)], 1, size, 1, &q[static_cast<size_t>(t * size)],
                           &k[static_cast<size_t>(t * size)], size, &v[static_cast<size_t>(t * n_values + j)], n_values,
                           &kq[static_cast<size_t>(t)], 1, &decay[static_cast<size_t>(t)],
                           &strength[static_cast<size_t>(t)], 1, 0.25f, &cut_out[static_cast<size_t>(t * n_values + j)],
                           n_values});
          }
        }
        EXPECT_TRUE(same_bits(out, cut_out)) << kernels.name;
        EXPECT_TRUE(same_bits(state, cut_state)) << kernels.name;
        out.insert(out.end(), state.begin(), state.end());
        return out;
      });
    }
  }
}

}  // namespace
}  // namespace kz
