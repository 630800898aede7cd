#include "apps/cli/bench_profile.h"

#include "apps/cli/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace kz::cli {
namespace {

std::vector<KernelPlacement> by_time(const BenchProfile& profile) {
  std::vector<KernelPlacement> verbs = profile.verbs;
  std::sort(verbs.begin(), verbs.end(),
            [](const KernelPlacement& a, const KernelPlacement& b) { return a.seconds > b.seconds; });
  return verbs;
}

double other_seconds(const BenchProfile& profile) {
  double seconds = profile.total_seconds;
  for (const KernelPlacement& verb : profile.verbs) seconds -= verb.seconds;
  return seconds;
}

/// Seconds and bytes of the lines with this verb.
KernelPlacement sum_of(const BenchProfile& profile, std::string_view verb) {
  KernelPlacement sum;
  for (const KernelPlacement& line : profile.verbs) {
    if (line.verb != verb) continue;
    sum.calls += line.calls;
    sum.bytes += line.bytes;
    sum.seconds += line.seconds;
    sum.multiply_adds += line.multiply_adds;
  }
  return sum;
}

std::string rate_text(double amount, double seconds) {
  return amount > 0 && seconds > 0 ? fmt::format("{:.1f}", amount / seconds / 1e9) : "";
}

}  // namespace

nlohmann::ordered_json profile_json(const BenchResult& result) {
  nlohmann::ordered_json verbs = nlohmann::ordered_json::array();
  const double total = result.profile.total_seconds;
  for (const KernelPlacement& line : by_time(result.profile)) {
    verbs.push_back({{"verb", line.verb},
                     {"weights", line.weights},
                     {"kernel", line.kernel},
                     {"device", line.device},
                     {"calls", line.calls},
                     {"seconds", line.seconds},
                     {"share", line.seconds / total},
                     {"bytes", line.bytes},
                     {"multiply_adds", line.multiply_adds}});
  }
  return {{"total_seconds", total}, {"other_seconds", other_seconds(result.profile)}, {"verbs", verbs}};
}

std::string profile_text(const BenchResult& result) {
  const BenchProfile& profile = result.profile;
  const bool is_decode = result.test.n_prompt == 0;
  const double parts = is_decode ? static_cast<double>(result.test.n_gen) : 1;
  std::vector<std::vector<std::string>> rows = {
      {"  verb", "weights", "kernel", "calls", is_decode ? "ms/token" : "ms", "share", "GB/s", "GMAC/s"}};
  const auto add = [&](const std::string& verb, const KernelPlacement& line) {
    rows.push_back({"  " + verb, line.weights, line.kernel, line.calls > 0 ? std::to_string(line.calls) : "",
                    fmt::format("{:.3f}", 1e3 * line.seconds / parts),
                    fmt::format("{:.1f} %", 100 * line.seconds / profile.total_seconds),
                    rate_text(static_cast<double>(line.bytes), line.seconds),
                    rate_text(static_cast<double>(line.multiply_adds), line.seconds)});
  };
  for (const KernelPlacement& line : by_time(profile)) add(line.verb, line);
  KernelPlacement other, total;
  other.seconds = other_seconds(profile);
  total.seconds = profile.total_seconds;
  add("other", other);
  add("all products", sum_of(profile, "linear"));
  add("total", total);
  return fmt::format("{}, one repetition with timed verbs, {:.2f} tok/s\n", result.test.name(),
                     static_cast<double>(result.test.n_tokens()) / profile.total_seconds) +
         table(rows, {3, 4, 5, 6, 7});
}

}  // namespace kz::cli
