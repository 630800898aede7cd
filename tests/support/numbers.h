// Numbers for the tests: vectors read from files, and how far two rows of logits are apart.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace kz::testing {

inline std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::vector<float> read_floats(const std::string& path) {
  const std::string bytes = read_bytes(path);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::copy_n(bytes.data(), values.size() * sizeof(float), reinterpret_cast<char*>(values.data()));
  return values;
}

/// sqrt(sum((a - b)^2) / sum(b^2))
inline double relative_rms(std::span<const float> a, std::span<const float> b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += d * d;
    size += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(difference / size);
}

inline double log_sum_exp(std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - top);
  return top + std::log(sum);
}

/// KL(softmax(exact) || softmax(other))
inline double kl_divergence(std::span<const float> exact, std::span<const float> other) {
  const double exact_sum = log_sum_exp(exact);
  const double other_sum = log_sum_exp(other);
  double kl = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double log_p = static_cast<double>(exact[i]) - exact_sum;
    const double log_q = static_cast<double>(other[i]) - other_sum;
    kl += std::exp(log_p) * (log_p - log_q);
  }
  return kl;
}

inline int32_t argmax(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// True when both rows are the same bits.
inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
           return std::signbit(x) == std::signbit(y) && x == y;
         });
}

}  // namespace kz::testing
