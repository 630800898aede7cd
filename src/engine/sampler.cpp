#include "engine/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace kz {
namespace {

/// Up to this many are kept by a heap while the logits are read once; more are selected from a copy.
constexpr size_t kHeapLimit = 1024;
/// Up to this many survivors are put in order by sorting; more by reading the logits again.
constexpr size_t kSortLimit = 4096;

void check_field(std::string_view field, double value, double lo, double hi) {
  if (value >= lo && value <= hi) return;  // NaN fails both
  throw Error(ErrorCode::bad_argument, fmt::format("{} is {}, expected {} to {}", field, value, lo, hi));
}

void check_field(std::string_view field, int64_t value, int64_t lo, int64_t hi) {
  if (value >= lo && value <= hi) return;
  throw Error(ErrorCode::bad_argument, fmt::format("{} is {}, expected {} to {}", field, value, lo, hi));
}

}  // namespace

void check(const SamplerParams& params) {
  check_field("temperature", params.temperature, 0.0, 100.0);
  check_field("top-k", params.top_k, 0, INT32_MAX);
  check_field("top-p", params.top_p, 0.0, 1.0);
  check_field("min-p", params.min_p, 0.0, 1.0);
  check_field("seed", params.seed, -1, INT64_MAX);
}

int64_t fresh_seed() { return static_cast<int64_t>(std::random_device{}() & 0x7fffffffu); }

Sampler::Sampler(int64_t n_vocab) { candidates_.reserve(static_cast<size_t>(n_vocab)); }

int64_t Sampler::size_bytes(int64_t n_vocab) { return n_vocab * static_cast<int64_t>(sizeof(Candidate)); }

void Sampler::start(const SamplerParams& params, uint64_t seed, std::span<const int32_t> suppressed) {
  params_ = params;
  random_ = Random(seed);
  suppressed_.assign(suppressed.begin(), suppressed.end());
  std::sort(suppressed_.begin(), suppressed_.end());
}

bool Sampler::is_suppressed(int32_t id) const { return std::binary_search(suppressed_.begin(), suppressed_.end(), id); }

int32_t Sampler::sample(std::span<const float> logits) {
  const int32_t best = largest(logits);
  if (params_.temperature == 0) return best;
  top_logit_ = logits[static_cast<size_t>(best)];
  const auto k = static_cast<size_t>(params_.top_k);
  if (k == 0 || k >= logits.size()) {
    keep_all(logits);
  } else {
    keep_top_k(logits, k);
  }
  if (params_.top_p < 1) keep_top_p();
  if (params_.min_p > 0) keep_min_p();
  order_by_id(logits);
  return draw();
}

int32_t Sampler::largest(std::span<const float> logits) const {
  int32_t best = -1;
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const bool is_larger = best < 0 || logits[i] > logits[static_cast<size_t>(best)];
    if (is_larger && !is_suppressed(id)) best = id;
  }
  if (best < 0) throw Error(ErrorCode::bad_argument, "every token of the vocabulary is suppressed");
  return best;
}

void Sampler::keep_all(std::span<const float> logits) {
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (!is_suppressed(id)) candidates_.push_back({logits[i], id});
  }
}

void Sampler::keep_top_k(std::span<const float> logits, size_t k) {
  if (k > kHeapLimit) {
    keep_all(logits);
    if (k >= candidates_.size()) return;
    std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(k), candidates_.end(),
                     ranks_before);
    candidates_.resize(k);
    return;
  }
  // A heap whose front is the lowest of the k best so far; most logits fail the first comparison. An equal logit
  // comes with a higher id, so it ranks behind and need not be looked at.
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (candidates_.size() == k && logits[i] <= candidates_.front().logit) continue;
    const Candidate candidate{logits[i], static_cast<int32_t>(i)};
    if (is_suppressed(candidate.id)) continue;
    if (candidates_.size() == k) {
      std::pop_heap(candidates_.begin(), candidates_.end(), ranks_before);
      candidates_.pop_back();
    }
    candidates_.push_back(candidate);
    std::push_heap(candidates_.begin(), candidates_.end(), ranks_before);
  }
}

/// Keeps the fewest best-ranked candidates whose probabilities reach top_p: the weighted counterpart of nth_element,
/// linear on average, nothing is sorted but the last few.
void Sampler::keep_top_p() {
  constexpr std::ptrdiff_t kFew = 32;
  const auto weight = [this](const Candidate& c) { return std::exp(static_cast<double>(c.logit) - top_logit_); };
  double total = 0;
  for (const Candidate& candidate : candidates_) total += weight(candidate);
  const double wanted = params_.top_p * total;

  double before = 0;  // weight of those that rank before `low`
  auto low = candidates_.begin();
  auto high = candidates_.end();
  while (high - low > kFew) {
    const auto middle = low + (high - low) / 2;
    std::nth_element(low, middle, high, ranks_before);
    double half = 0;
    for (auto at = low; at != middle; ++at) half += weight(*at);
    if (before + half >= wanted) {
      high = middle;
    } else {
      before += half;
      low = middle;
    }
  }
  std::sort(low, high, ranks_before);
  while (low != high && (before < wanted || low == candidates_.begin())) before += weight(*low++);
  candidates_.resize(static_cast<size_t>(low - candidates_.begin()));
}

void Sampler::keep_min_p() {
  // p >= min_p * p_max, in logarithms; the best one passes whatever the rounding.
  const double threshold = static_cast<double>(top_logit_) + std::min(0.0, std::log(params_.min_p));
  std::erase_if(candidates_, [threshold](const Candidate& c) { return static_cast<double>(c.logit) < threshold; });
}

/// Puts the survivors in ascending id order: selection algorithms leave an order of their own, which must not decide
/// what a random number means.
void Sampler::order_by_id(std::span<const float> logits) {
  if (candidates_.size() <= kSortLimit) {
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
    return;
  }
  const Candidate last = *std::max_element(candidates_.begin(), candidates_.end(), ranks_before);
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    const Candidate candidate{logits[i], static_cast<int32_t>(i)};
    if (!ranks_before(last, candidate) && !is_suppressed(candidate.id)) candidates_.push_back(candidate);
  }
}

int32_t Sampler::draw() {
  const auto weight = [this](const Candidate& c) {
    return std::exp((static_cast<double>(c.logit) - top_logit_) / params_.temperature);
  };
  double total = 0;
  for (const Candidate& candidate : candidates_) total += weight(candidate);
  double left = random_.uniform() * total;
  for (const Candidate& candidate : candidates_) {
    left -= weight(candidate);
    if (left < 0) return candidate.id;
  }
  return candidates_.back().id;  // rounding left a crumb
}

}  // namespace kz
