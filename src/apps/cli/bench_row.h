// One row of figures: a test, its conditions and what came out. docs/bench.md names every field.
#pragma once

#include <kazeia/bench.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kz::cli {

/// Middle value, or the mean of the two middle ones; 0 of nothing.
double median(std::vector<double> values);
double mean(const std::vector<double>& values);
/// Of a sample (n - 1); 0 of fewer than two.
double standard_deviation(const std::vector<double>& values);

/// What an engine is and how it was opened: the same for all tests that run on it.
struct BenchSetup {
  std::string activations;
  std::string model_hash;
  double load_seconds = 0;
  int64_t load_peak_bytes = 0;
  MachineFacts machine;
};

/// How the tests of a row ran.
struct BenchConditions {
  int64_t n_batch = 0, n_ubatch = 0;
  std::string key_type, value_type;
  std::map<int64_t, double> first_token_seconds;  ///< by length of the prompt
  std::string test_time;                          ///< ISO 8601, UTC
};

/// The fields in their order. A share that cannot be said is null.
nlohmann::ordered_json bench_row(const Engine& engine, const BenchSetup& setup, const BenchConditions& conditions,
                                 const BenchResult& result);

}  // namespace kz::cli
