// Engine::evaluate: logits of many positions in bounded memory.
#include <fmt/format.h>

#include <algorithm>

#include "engine/sequence.h"

namespace kz {
namespace {

constexpr int64_t kMaxLogitBytes = int64_t{64} << 20;

SessionPlan plan_evaluation(const EngineCore& core, std::span<const int32_t> ids, SessionOptions options) {
  options.n_ctx = static_cast<int64_t>(ids.size());
  SessionPlan plan = plan_session(options, *core.model);
  const int64_t row_bytes = 4 * core.model->config().n_vocab;
  plan.max_logit_rows = std::clamp(kMaxLogitBytes / row_bytes, int64_t{1}, plan.n_batch);
  return plan;
}

}  // namespace

void Engine::evaluate(std::span<const int32_t> ids, const SessionOptions& options,
                      const std::function<void(int64_t position, std::span<const float> logits)>& on_row,
                      int64_t first_position) const {
  impl_->core->check_ids(ids);
  if (first_position < 0) {
    throw Error(ErrorCode::bad_argument, fmt::format("the first position is {}, expected 0 or more", first_position));
  }
  const SessionPlan plan = plan_evaluation(*impl_->core, ids, options);
  const auto n_vocab = static_cast<size_t>(impl_->core->model->config().n_vocab);
  const auto n_ids = static_cast<int64_t>(ids.size());
  Sequence sequence(impl_->core, plan);
  int64_t position = 0;
  while (position < n_ids) {
    // Rows without logits go in large pieces; rows with logits in pieces that the memory for logits holds.
    const bool wants_logits = position >= first_position;
    const int64_t end = wants_logits ? n_ids : std::min(n_ids, first_position);
    const int64_t n = std::min(end - position, wants_logits ? plan.max_logit_rows : plan.n_batch);
    const std::span<const int32_t> piece = ids.subspan(static_cast<size_t>(position), static_cast<size_t>(n));
    const std::span<const float> logits = sequence.forward(piece, wants_logits ? n : 0);
    for (int64_t i = 0; wants_logits && i < n; ++i) {
      on_row(position + i, logits.subspan(static_cast<size_t>(i) * n_vocab, n_vocab));
    }
    position += n;
  }
}

}  // namespace kz
