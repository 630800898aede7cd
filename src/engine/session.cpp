// Session::sync: the history becomes what the caller says, and only what is missing is computed.
#include <fmt/format.h>

#include <algorithm>

#include "core/system.h"
#include "engine/memory_account.h"
#include "engine/session_impl.h"

namespace kz {

SessionCore::SessionCore(std::shared_ptr<EngineCore> shared, const SessionPlan& plan)
    : core(std::move(shared)),
      sequence(core, plan),
      sampler(core->model->config().n_vocab),
      memory(session_memory(plan, *core->model, *core->backend)) {
  history.reserve(static_cast<size_t>(plan.n_ctx));
}

void SessionCore::check_prompt(std::span<const int32_t> tokens) const {
  core->check_ids(tokens);
  const auto n_ctx = static_cast<size_t>(sequence.plan().n_ctx);
  if (tokens.size() > n_ctx) {
    throw Error(ErrorCode::bad_argument,
                fmt::format("the prompt has {} tokens, but the context holds {} (-c sets it)", tokens.size(), n_ctx));
  }
}

void SessionCore::throw_if_cancelled() const {
  if (is_cancelled.load(std::memory_order_relaxed)) {
    throw Error(ErrorCode::cancelled, "reading the prompt was cancelled");
  }
}

int64_t SessionCore::keep_prefix(std::span<const int32_t> tokens) {
  const size_t longest = std::min(history.size(), tokens.size());
  const auto differs =
      std::mismatch(history.begin(), history.begin() + static_cast<std::ptrdiff_t>(longest), tokens.begin());
  auto n_kept = static_cast<size_t>(differs.first - history.begin());
  const bool is_known = n_kept == tokens.size() && n_kept == history.size() && !logits.empty();
  if (is_known) return static_cast<int64_t>(n_kept);
  // Logits come from an evaluated token, so at least the last one is evaluated.
  n_kept = std::min(n_kept, tokens.size() - 1);
  logits = {};
  if (n_kept == 0 || !sequence.can_cut_to(static_cast<int64_t>(n_kept))) {
    n_kept = 0;
    sequence.clear();
  } else {
    sequence.cut_to(static_cast<int64_t>(n_kept));
  }
  history.resize(n_kept);
  return static_cast<int64_t>(n_kept);
}

void SessionCore::append(std::span<const int32_t> tokens, bool wants_logits) {
  logits = {};
  try {
    logits = sequence.forward(tokens, wants_logits ? 1 : 0);
  } catch (...) {
    history.clear();
    throw;
  }
  history.insert(history.end(), tokens.begin(), tokens.end());
}

int64_t SessionCore::sync(std::span<const int32_t> tokens) {
  check_prompt(tokens);
  const int64_t n_kept = keep_prefix(tokens);
  std::span<const int32_t> missing = tokens.subspan(static_cast<size_t>(n_kept));
  const auto n_batch = static_cast<size_t>(sequence.plan().n_batch);
  while (!missing.empty()) {
    throw_if_cancelled();
    const size_t n = std::min(missing.size(), n_batch);
    append(missing.first(n), n == missing.size());
    missing = missing.subspan(n);
  }
  return n_kept;
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

int64_t Session::sync(std::span<const int32_t> tokens) {
  impl_->is_cancelled = false;
  const auto placed = impl_->core->place_caller();
  return impl_->sync(tokens);
}

std::span<const float> Session::logits() const { return impl_->logits; }
std::span<const int32_t> Session::history() const { return impl_->history; }
int64_t Session::n_ctx() const { return impl_->sequence.plan().n_ctx; }
void Session::cancel() { impl_->is_cancelled = true; }
std::vector<MemoryItem> Session::memory() const { return impl_->memory; }

std::unique_ptr<Session> Engine::open_session(const SessionOptions& options) const {
  const EngineCore& core = *impl_->core;
  const SessionPlan plan = plan_session(options, *core.model);
  check_fits(session_memory(plan, *core.model, *core.backend), plan.n_ctx, machine_memory_bytes());
  return std::unique_ptr<Session>(new Session(std::make_unique<Session::Impl>(impl_->core, plan)));
}

}  // namespace kz
