#include "engine/session_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace kz {
namespace {

constexpr int64_t kMaxContext = int64_t{1} << 24;
constexpr int64_t kMaxBatch = int64_t{1} << 14;

void check_range(std::string_view option, int64_t value, int64_t lo, int64_t hi) {
  if (value >= lo && value <= hi) return;
  throw Error(ErrorCode::bad_argument, fmt::format("{} is {}, expected {} to {}", option, value, lo, hi));
}

DType kv_type(std::string_view option, std::string_view name, int64_t head_dim) {
  const DTypeInfo* info = find_dtype(name);
  const bool possible =
      info != nullptr && (info->dtype == DType::f32 || info->dtype == DType::f16 || info->dtype == DType::q8_0);
  if (!possible) {
    throw Error(ErrorCode::bad_argument, fmt::format("{} is '{}', expected f32, f16 or q8_0", option, name));
  }
  if (head_dim % info->block_elements != 0) {
    throw Error(ErrorCode::bad_argument,
                fmt::format("{} is '{}', which needs heads of a multiple of {} features; this model's have {}", option,
                            name, info->block_elements, head_dim));
  }
  return info->dtype;
}

DeltaForm delta_form(std::string_view name) {
  if (name == "token") return DeltaForm::token;
  if (name == "chunked") return DeltaForm::chunked;
  throw Error(ErrorCode::bad_argument, fmt::format("delta form is '{}', expected 'token' or 'chunked'", name));
}

}  // namespace

SessionPlan plan_session(const SessionOptions& options, const Model& model) {
  check_range("context size", options.n_ctx, 0, kMaxContext);
  check_range("batch size", options.n_batch, 1, kMaxBatch);
  const ModelConfig& config = model.config();
  SessionPlan plan;
  plan.n_ctx = options.n_ctx != 0 ? options.n_ctx : std::clamp(config.n_ctx_train, int64_t{1}, kMaxContext);
  plan.n_batch = std::min(options.n_batch, plan.n_ctx);
  plan.key_type = kv_type("key type", options.key_type, config.key_dim);
  plan.value_type = kv_type("value type", options.value_type, config.value_dim);
  plan.delta_form = delta_form(options.delta_form);
  return plan;
}

WorkLimits work_limits(const SessionPlan& plan, const Model& model) {
  WorkLimits limits = model.work_limits(plan.n_batch, plan.n_ctx);
  limits.delta.form = plan.delta_form;
  return limits;
}

}  // namespace kz
