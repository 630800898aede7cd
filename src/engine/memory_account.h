// What an engine and its sessions hold in memory, computed before anything is allocated.
#pragma once

#include <kazeia/engine.h>

#include "engine/session_plan.h"
#include "gguf/file.h"

namespace kz {

/// Weights and vocabulary. float_bytes: the small tensors that the model copies out of the file.
std::vector<MemoryItem> engine_memory(const gguf::File& file, int64_t float_bytes, int64_t vocabulary_bytes,
                                      PackedBytes packed = {});

/// Throws Error(out_of_memory) that names the parts when they are more than the machine has. Memory is taken as it is
/// used, so a session that cannot fit would otherwise open well and be killed later.
void check_fits(const std::vector<MemoryItem>& session, int64_t n_ctx, int64_t machine_bytes);

/// KV when full, recurrent state, scratch (activations, logits, the backend's work memory), sampler.
std::vector<MemoryItem> session_memory(const SessionPlan& plan, const Model& model, const Backend& backend);

}  // namespace kz
