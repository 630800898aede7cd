// SessionOptions, checked against a model and turned into sizes.
#pragma once

#include <kazeia/engine.h>

#include "backend/backend.h"
#include "model/model.h"

namespace kz {

/// What a sequence is opened with: checked numbers and types.
struct SessionPlan {
  int64_t n_ctx = 0;
  int64_t n_batch = 0;  ///< at most n_ctx
  DType key_type = DType::f16;
  DType value_type = DType::f16;
  DeltaForm delta_form = DeltaForm::token;
  int64_t max_logit_rows = 1;

  int64_t n_kv_blocks() const { return (n_ctx + kKvBlockPositions - 1) / kKvBlockPositions; }
};

/// Throws Error(bad_argument) that names the option, its value and what is possible.
SessionPlan plan_session(const SessionOptions& options, const Model& model);

/// The bounds by which the backend sizes its work memory for this session.
WorkLimits work_limits(const SessionPlan& plan, const Model& model);

}  // namespace kz
