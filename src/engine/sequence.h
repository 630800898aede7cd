// One sequence on its way through the model: state, activations, logits.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/arena.h"
#include "engine/engine_core.h"
#include "engine/session_plan.h"

namespace kz {

/// Owns everything that forward passes of one sequence need; takes it all when built, so that forward() allocates
/// nothing. For one thread at a time; different sequences of one engine may run on different threads.
class Sequence {
 public:
  Sequence(std::shared_ptr<EngineCore> core, const SessionPlan& plan);

  /// Appends 1 to n_batch checked ids and computes the logits of the last n_logits of them (0 to max_logit_rows).
  /// Returns n_logits rows of n_vocab, valid until the next call. If anything throws, the sequence is empty.
  std::span<const float> forward(std::span<const int32_t> tokens, int64_t n_logits);

  int64_t position() const { return state_.position(); }
  bool can_cut_to(int64_t n) const { return state_.can_cut_to(n); }
  void cut_to(int64_t n) { state_.cut_to(n); }
  void clear() { state_.clear(); }
  /// Lets cut_to() come back here although the model has recurrent layers (State::keep).
  void keep() { state_.keep(); }
  int64_t kept_bytes() const { return state_.kept_bytes(); }
  const SessionPlan& plan() const { return plan_; }

 private:
  void run(std::span<const int32_t> tokens, int64_t n_logits);

  std::shared_ptr<EngineCore> core_;
  SessionPlan plan_;
  int64_t n_vocab_;
  State state_;
  Arena scratch_memory_;
  Arena logits_memory_;
  std::vector<int32_t> logit_rows_;
};

}  // namespace kz
