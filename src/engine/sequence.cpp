#include "engine/sequence.h"

#include <fmt/format.h>

#include <array>

#include "core/error.h"
#include "engine/logits_check.h"

namespace kz {
namespace {

std::shared_ptr<KvPool> make_pool(const Model& model, const SessionPlan& plan) {
  return std::make_shared<KvPool>(model.state_layout(), plan.n_kv_blocks(), plan.key_type, plan.value_type);
}

}  // namespace

Sequence::Sequence(std::shared_ptr<EngineCore> core, const SessionPlan& plan)
    : core_(std::move(core)),
      plan_(plan),
      n_vocab_(core_->model->config().n_vocab),
      state_(core_->model->state_layout(), make_pool(*core_->model, plan), plan.n_ctx),
      scratch_memory_("scratch", static_cast<size_t>(core_->model->scratch_bytes(plan.n_batch, plan.max_logit_rows))),
      logits_memory_("logits", sizeof(float) * static_cast<size_t>(n_vocab_ * plan.max_logit_rows)) {
  logit_rows_.reserve(static_cast<size_t>(plan.max_logit_rows));
  const std::lock_guard lock(core_->forward_mutex);
  core_->backend->reserve(work_limits(plan_, *core_->model));
}

std::span<const float> Sequence::forward(std::span<const int32_t> tokens, int64_t n_logits) {
  const auto n_tokens = static_cast<int64_t>(tokens.size());
  KZ_CHECK(n_tokens > 0 && n_tokens <= plan_.n_batch);
  KZ_CHECK(n_logits >= 0 && n_logits <= n_tokens && n_logits <= plan_.max_logit_rows);
  const auto* logits = reinterpret_cast<const float*>(logits_memory_.data());
  const auto row = static_cast<size_t>(n_vocab_);
  try {
    state_.begin(n_tokens);
    run(tokens, n_logits);
    state_.commit(n_tokens);
    for (int64_t i = 0; i < n_logits; ++i) {
      check_logits({logits + static_cast<size_t>(i) * row, row}, core_->file.name(), position() - n_logits + i);
    }
  } catch (...) {  // half a forward is no history: recurrent memory cannot be taken back
    state_.clear();
    throw;
  }
  return {logits, static_cast<size_t>(n_logits) * row};
}

void Sequence::run(std::span<const int32_t> tokens, int64_t n_logits) {
  const auto n_tokens = static_cast<int64_t>(tokens.size());
  logit_rows_.clear();
  for (int64_t i = n_tokens - n_logits; i < n_tokens; ++i) logit_rows_.push_back(static_cast<int32_t>(i));
  const std::array<Span, 1> spans{Span{&state_, state_.position(), 0, n_tokens}};
  const Rows rows{spans, tokens, logit_rows_, plan_.delta_form};
  Scratch scratch(scratch_memory_.data(), scratch_memory_.size_bytes());
  const Tensor logits = matrix_f32(reinterpret_cast<float*>(logits_memory_.data()), n_vocab_, n_logits);
  const std::lock_guard lock(core_->forward_mutex);
  core_->model->forward(*core_->backend, rows, scratch, logits);
}

}  // namespace kz
