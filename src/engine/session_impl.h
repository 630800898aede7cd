// What a Session holds and does; the public class is a shell around it.
#pragma once

#include <kazeia/engine.h>

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "engine/sampler.h"
#include "engine/sequence.h"

namespace kz {

struct SessionCore {
  SessionCore(std::shared_ptr<EngineCore> shared, const SessionPlan& plan);

  /// Session::sync(), which an earlier cancel() still stops.
  int64_t sync(std::span<const int32_t> tokens);
  /// Throws Error(bad_argument) when the ids cannot become the history.
  void check_prompt(std::span<const int32_t> tokens) const;
  /// How many tokens of the wanted history can stay; the sequence is cut to that.
  int64_t keep_prefix(std::span<const int32_t> tokens);
  /// Evaluates tokens behind the history, logits for the last one if wanted.
  void append(std::span<const int32_t> tokens, bool wants_logits);
  void throw_if_cancelled() const;

  std::shared_ptr<EngineCore> core;
  Sequence sequence;
  std::vector<int32_t> history;   ///< what the sequence holds, token by token
  std::span<const float> logits;  ///< of the last token; empty when they were not computed
  Sampler sampler;
  std::vector<MemoryItem> memory;
  std::atomic<bool> is_cancelled{false};
};

struct Session::Impl : SessionCore {
  using SessionCore::SessionCore;
};

}  // namespace kz
