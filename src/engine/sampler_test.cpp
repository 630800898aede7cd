#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace kz {
namespace {

std::vector<float> random_logits(size_t n, uint32_t seed, bool ties) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(n);
  for (float& x : logits) x = ties ? std::round(normal(random)) : normal(random);
  return logits;
}

SamplerParams params_of(double temperature, int64_t k, double p, double min_p) {
  SamplerParams params;
  params.temperature = temperature;
  params.top_k = k;
  params.top_p = p;
  params.min_p = min_p;
  return params;
}

/// The definition, with everything sorted: which tokens stay, and how likely each is. Ascending ids.
std::vector<std::pair<int32_t, double>> definition(const std::vector<float>& logits, const SamplerParams& params) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto logit = [&](int32_t id) { return static_cast<double>(logits[static_cast<size_t>(id)]); };
  std::sort(ids.begin(), ids.end(),
            [&](int32_t a, int32_t b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  if (params.top_k > 0) ids.resize(std::min(ids.size(), static_cast<size_t>(params.top_k)));
  const double top = logit(ids[0]);
  double total = 0;
  for (const int32_t id : ids) total += std::exp(logit(id) - top);
  size_t n = 0;
  for (double sum = 0; n < ids.size() && (n == 0 || sum < params.top_p * total); ++n)
    sum += std::exp(logit(ids[n]) - top);
  if (params.top_p < 1) ids.resize(n);
  std::erase_if(ids, [&](int32_t id) { return std::exp(logit(id) - top) < params.min_p; });
  std::sort(ids.begin(), ids.end());
  std::vector<std::pair<int32_t, double>> chances;
  double weights = 0;
  for (const int32_t id : ids) weights += std::exp((logit(id) - top) / params.temperature);
  for (const int32_t id : ids) chances.emplace_back(id, std::exp((logit(id) - top) / params.temperature) / weights);
  return chances;
}

int32_t draw(const std::vector<std::pair<int32_t, double>>& chances, double uniform) {
  for (const auto& [id, chance] : chances) {
    uniform -= chance;
    if (uniform < 0) return id;
  }
  return chances.back().first;
}

TEST(Random, EqualsThePublishedGenerator) {
  Random random(std::array<uint64_t, 4>{1, 2, 3, 4});
  EXPECT_EQ(random.next(), 41943041u);
  EXPECT_EQ(random.next(), 58720359u);
  EXPECT_EQ(random.next(), 3588806011781223u);
  EXPECT_EQ(random.next(), 3591011842654386u);
  // Seed 0: splitmix64 gives e220a8397b1dcdaf, 6e789e6aa1b965f4, 06c45d188009454f, f88bb8a8724c81ec.
  Random seeded(0);
  Random same(
      std::array<uint64_t, 4>{0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u, 0x06c45d188009454fu, 0xf88bb8a8724c81ecu});
  EXPECT_EQ(seeded.next(), same.next());
  for (int i = 0; i < 10000; ++i) {
    const double u = seeded.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
  }
}

TEST(Sampler, GreedyTakesTheFirstMaximum) {
  Sampler sampler(5);
  sampler.start(params_of(0, 40, 0.9, 0.1), 1, {});
  EXPECT_EQ(sampler.sample(std::vector<float>{-1, 3, 2, 3, -5}), 1);
  EXPECT_EQ(sampler.sample(std::vector<float>{-1, -2, -3, -4, -0.5f}), 4);
  const std::vector<int32_t> suppressed = {3, 1};
  sampler.start(params_of(0, 40, 0.9, 0.1), 1, suppressed);
  EXPECT_EQ(sampler.sample(std::vector<float>{-1, 3, 2, 3, -5}), 2);
}

TEST(Sampler, EqualsTheDefinition) {
  for (const size_t n : {size_t{1}, size_t{2}, size_t{50}, size_t{3000}, size_t{9000}}) {
    for (const bool ties : {false, true}) {
      const std::vector<float> logits = random_logits(n, static_cast<uint32_t>(n), ties);
      Sampler sampler(static_cast<int64_t>(n));
      for (const int64_t k : {0, 1, 2, 40, 1024, 1025, 5000}) {
        for (const double p : {0.0, 0.3, 0.95, 1.0}) {
          for (const double min_p : {0.0, 0.05, 1.0}) {
            for (const double temperature : {0.1, 0.8, 5.0}) {
              const SamplerParams params = params_of(temperature, k, p, min_p);
              const auto chances = definition(logits, params);
              sampler.start(params, 99, {});
              Random random(99);
              for (int i = 0; i < 3; ++i) {
                ASSERT_EQ(sampler.sample(logits), draw(chances, random.uniform()))
                    << "n " << n << " k " << k << " p " << p << " min_p " << min_p << " t " << temperature;
              }
            }
          }
        }
      }
    }
  }
}

TEST(Sampler, FrequenciesFollowProbabilities) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  Sampler sampler(3);
  sampler.start(params_of(1, 0, 1, 0), 4, {});
  constexpr int kDraws = 60000;
  std::array<int, 3> counts{};
  for (int i = 0; i < kDraws; ++i) ++counts[static_cast<size_t>(sampler.sample(logits))];
  const std::array wanted = {0.5, 0.3, 0.2};
  for (size_t i = 0; i < 3; ++i) {
    const double deviation = std::sqrt(kDraws * wanted[i] * (1 - wanted[i]));
    EXPECT_NEAR(counts[i], kDraws * wanted[i], 5 * deviation);
  }
}

// Case B113.
TEST(Sampler, NeverChoosesASuppressedToken) {
  const std::vector<int32_t> suppressed = {7, 0, 31};
  for (const SamplerParams& params : {params_of(0, 0, 1, 0), params_of(2, 0, 1, 0), params_of(2, 5, 1, 0),
                                      params_of(2, 0, 0.9, 0), params_of(2, 2000, 0.9, 0.01)}) {
    std::vector<float> logits = random_logits(6000, 3, false);
    for (const int32_t id : suppressed) logits[static_cast<size_t>(id)] = 50;  // they would always win
    Sampler sampler(6000);
    sampler.start(params, 5, suppressed);
    for (int i = 0; i < 200; ++i) {
      const int32_t id = sampler.sample(logits);
      ASSERT_EQ(std::count(suppressed.begin(), suppressed.end(), id), 0);
    }
  }
  Sampler sampler(2);
  const std::vector<int32_t> all = {0, 1};
  sampler.start(params_of(1, 0, 1, 0), 5, all);
  EXPECT_THROW(sampler.sample(std::vector<float>{1, 2}), Error);
}

TEST(Sampler, ExtremesChooseSomething) {
  const float big = std::numeric_limits<float>::max();
  for (const double temperature : {1e-300, 1e-6, 100.0}) {
    Sampler sampler(4);
    sampler.start(params_of(temperature, 0, 1, 0), 5, {});
    EXPECT_EQ(sampler.sample(std::vector<float>{-big, big, -big, 0}), 1);
    const int32_t id = sampler.sample(std::vector<float>{1, 1, 1, 1});
    EXPECT_GE(id, 0);
    EXPECT_LT(id, 4);
  }
}

// Case B109: the table of ranges.
TEST(SamplerParams, RangesAreChecked) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  struct Row {
    const char* field;
    std::vector<double> good, bad;
    std::function<void(SamplerParams&, double)> set;
  };
  const std::vector<Row> table = {
      {"temperature",
       {0, 0.8, 100},
       {-1, -1e-9, 100.5, 999999, nan, infinity},
       [](auto& p, double x) { p.temperature = x; }},
      {"top-k",
       {0, 1, 2147483647},
       {-1, -5, 2147483648.0},
       [](auto& p, double x) { p.top_k = static_cast<int64_t>(x); }},
      {"top-p", {0, 0.5, 1}, {-1, 1.01, nan, infinity}, [](auto& p, double x) { p.top_p = x; }},
      {"min-p", {0, 0.5, 1}, {-0.1, 2, nan}, [](auto& p, double x) { p.min_p = x; }},
      {"seed", {-1, 0, 9e15}, {-2}, [](auto& p, double x) { p.seed = static_cast<int64_t>(x); }},
  };
  for (const Row& row : table) {
    for (const double value : row.good) {
      SamplerParams params;
      row.set(params, value);
      EXPECT_NO_THROW(check(params)) << row.field << " " << value;
    }
    for (const double value : row.bad) {
      SamplerParams params;
      row.set(params, value);
      try {
        check(params);
        ADD_FAILURE() << row.field << " " << value << " was accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_argument);
        const std::string text = error.what();
        EXPECT_TRUE(text.starts_with(row.field)) << text;
        EXPECT_NE(text.find("expected"), std::string::npos) << text;
      }
    }
  }
}

}  // namespace
}  // namespace kz
