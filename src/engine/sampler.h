// Logits -> token.
#pragma once

#include <kazeia/engine.h>

#include <span>
#include <vector>

#include "engine/random.h"

namespace kz {

/// Chooses tokens: a function of parameters, logits and its random state. The filters run in the order that users
/// know: top-k, top-p, min-p, then temperature. top-p and min-p see the probabilities before temperature. At least
/// one token always stays. Equal logits rank by ascending id, so the choice is the same everywhere.
class Sampler {
 public:
  /// Takes the memory that sample() needs; n_vocab is the longest row of logits.
  explicit Sampler(int64_t n_vocab);
  static int64_t size_bytes(int64_t n_vocab);

  /// Begins a new text. params must have passed check(); `suppressed` ids are never chosen.
  void start(const SamplerParams& params, uint64_t seed, std::span<const int32_t> suppressed);

  /// Allocates nothing. logits: finite, one per id. Throws Error(bad_argument) when every id is suppressed.
  int32_t sample(std::span<const float> logits);

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  static bool ranks_before(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  }
  bool is_suppressed(int32_t id) const;
  int32_t largest(std::span<const float> logits) const;
  void keep_all(std::span<const float> logits);
  void keep_top_k(std::span<const float> logits, size_t k);
  void keep_top_p();
  void keep_min_p();
  void order_by_id(std::span<const float> logits);
  int32_t draw();

  SamplerParams params_;
  Random random_{0};
  std::vector<int32_t> suppressed_;  // ascending
  std::vector<Candidate> candidates_;
  float top_logit_ = 0;
};

}  // namespace kz
