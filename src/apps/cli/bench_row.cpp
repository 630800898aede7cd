#include "apps/cli/bench_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kz::cli {
namespace {

using Row = nlohmann::ordered_json;

/// "abc1234" of "0.1.0 (abc1234)".
std::string commit_of(const std::string& version) {
  const size_t open = version.find('('), close = version.find(')', open);
  return close == std::string::npos ? version : version.substr(open + 1, close - open - 1);
}

void add_build(Row& row, const Engine& engine, const BenchSetup& setup) {
  const ModelInfo& info = engine.info();
  row["build_commit"] = commit_of(version());
  row["version"] = version();
  row["cpu_info"] = setup.machine.cpu;
  row["backend"] = engine.backend();
  row["kernels"] = engine.kernels();
  row["activations"] = setup.activations;
  row["n_threads"] = engine.n_threads();
  row["model_filename"] = info.path;
  row["model_type"] = info.architecture + " " + info.file_type;
  row["model_name"] = info.name;
  row["model_size"] = info.weight_bytes;
  row["model_n_params"] = info.n_parameters;
  row["model_hash"] = setup.model_hash;
  row["load_seconds"] = setup.load_seconds;
  row["load_peak_bytes"] = setup.load_peak_bytes;
}

void add_test(Row& row, const BenchConditions& conditions, const BenchTest& test) {
  row["n_batch"] = conditions.n_batch;
  row["n_ubatch"] = conditions.n_ubatch;
  row["type_k"] = conditions.key_type;
  row["type_v"] = conditions.value_type;
  row["n_prompt"] = test.n_prompt;
  row["n_gen"] = test.n_gen;
  row["n_depth"] = test.n_depth;
  row["test"] = test.name();
  row["test_time"] = conditions.test_time;
}

std::vector<double> rates(const BenchResult& result) {
  std::vector<double> values;
  for (const double seconds : result.seconds) values.push_back(static_cast<double>(result.test.n_tokens()) / seconds);
  return values;
}

void add_speed(Row& row, const BenchResult& result) {
  std::vector<double> nanoseconds;
  for (const double seconds : result.seconds) nanoseconds.push_back(std::round(seconds * 1e9));
  const std::vector<double> rate = rates(result);
  row["avg_ns"] = std::llround(mean(nanoseconds));
  row["stddev_ns"] = std::llround(standard_deviation(nanoseconds));
  row["avg_ts"] = mean(rate);
  row["stddev_ts"] = standard_deviation(rate);
  row["median_ts"] = median(rate);
  row["min_ts"] = *std::min_element(rate.begin(), rate.end());
  row["max_ts"] = *std::max_element(rate.begin(), rate.end());
  Row samples = Row::array();
  for (const double value : nanoseconds) samples.push_back(std::llround(value));
  row["samples_ns"] = samples;
  row["samples_ts"] = rate;
}

/// Of the limits taken with the repetitions; the rate of reading, and of the named int8 peak.
struct MedianLimits {
  double read_rate = 0;
  std::string read_loop;
  std::map<std::string, double> int8;
};

MedianLimits median_limits(const std::vector<MachineLimits>& limits) {
  MedianLimits middle;
  std::vector<double> reads;
  std::map<std::string, std::vector<double>> peaks;
  for (const MachineLimits& one : limits) {
    reads.push_back(one.read_rate_bytes_s);
    for (const Int8Peak& peak : one.int8) peaks[peak.kernels].push_back(peak.rate_mac_s);
  }
  middle.read_rate = median(reads);
  for (const auto& [name, values] : peaks) middle.int8[name] = median(values);
  // The loop that was the fastest at the round nearest to the middle.
  const auto near = [&](const MachineLimits& a, const MachineLimits& b) {
    return std::abs(a.read_rate_bytes_s - middle.read_rate) < std::abs(b.read_rate_bytes_s - middle.read_rate);
  };
  if (!limits.empty()) middle.read_loop = std::min_element(limits.begin(), limits.end(), near)->read_loop;
  return middle;
}

/// part / whole, or null where there is no whole or no sense.
Row share(double part, double whole, bool makes_sense) {
  return makes_sense && whole > 0 ? Row(part / whole) : Row(nullptr);
}

void add_bandwidth(Row& row, const BenchResult& result, const MedianLimits& limits, int64_t last_cache_bytes) {
  const BenchTest& test = result.test;
  const bool is_decode = test.n_prompt == 0 && test.n_gen > 0;
  const auto per_token = [&](int64_t bytes) { return bytes / std::max<int64_t>(test.n_tokens(), 1); };
  row["weight_bytes_per_token"] = per_token(result.weight_bytes);
  row["kv_bytes_per_token"] = per_token(result.kv_bytes);
  row["state_bytes_per_token"] = per_token(result.state_bytes);
  const double achieved = result.bytes_per_repetition() / median(result.seconds);
  row["read_bytes_s"] = is_decode ? Row(achieved) : Row(nullptr);
  row["limit_read_bytes_s"] = limits.read_rate;
  row["limit_read_loop"] = limits.read_loop;
  row["last_cache_bytes"] = last_cache_bytes;
  // A model that half fits the cache is not read from memory.
  const bool is_large = per_token(result.weight_bytes) >= 2 * last_cache_bytes;
  row["read_share"] = share(achieved, limits.read_rate, is_decode && is_large);
}

void add_multiplication(Row& row, const BenchResult& result, const MedianLimits& limits, const std::string& peak_name) {
  const bool is_prompt = result.test.n_prompt > 0 && result.test.n_gen == 0;
  const double achieved = static_cast<double>(result.multiply_adds) / median(result.seconds);
  const auto peak = limits.int8.find(peak_name);
  const double limit = peak == limits.int8.end() ? 0 : peak->second;
  row["mac_s"] = is_prompt ? Row(achieved) : Row(nullptr);
  row["limit_int8_mac_s"] = limit;
  row["limit_int8_kernels"] = limit > 0 ? peak_name : "";
  row["int8_share"] = share(achieved, limit, is_prompt);
  row["int8_peaks_mac_s"] = limits.int8;
}

void add_memory(Row& row, const BenchConditions& conditions, const BenchResult& result) {
  row["peak_bytes"] = result.memory.peak_bytes;
  row["anonymous_bytes"] = result.memory.anonymous_bytes;
  row["file_bytes"] = result.memory.file_bytes;
  row["minor_faults"] = result.minor_faults;
  row["major_faults"] = result.major_faults;
  Row first = Row::object();
  for (const auto& [n_prompt, seconds] : conditions.first_token_seconds)
    first[std::to_string(n_prompt)] = seconds * 1e3;
  row["first_token_ms"] = first;
  row["logits_hash"] = fmt::format("{:016x}", result.logits_hash);
  row["same_logits"] = result.same_logits;
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double standard_deviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double middle = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

nlohmann::ordered_json bench_row(const Engine& engine, const BenchSetup& setup, const BenchConditions& conditions,
                                 const BenchResult& result) {
  Row row;
  const MedianLimits limits = median_limits(result.limits);
  add_build(row, engine, setup);
  add_test(row, conditions, result.test);
  add_speed(row, result);
  add_bandwidth(row, result, limits, setup.machine.last_cache_bytes);
  add_multiplication(row, result, limits, int8_peak_name(engine.kernels()));
  add_memory(row, conditions, result);
  return row;
}

}  // namespace kz::cli
