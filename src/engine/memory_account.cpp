#include "engine/memory_account.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_core.h"
#include "engine/model_info.h"
#include "engine/sampler.h"

namespace kz {
namespace {

int64_t tensor_bytes(const gguf::File& file) {
  int64_t size_bytes = 0;
  for (const gguf::TensorInfo& tensor : file.tensors()) size_bytes += static_cast<int64_t>(tensor.size_bytes);
  return size_bytes;
}

}  // namespace

std::vector<MemoryItem> engine_memory(const gguf::File& file, int64_t float_bytes, int64_t vocabulary_bytes,
                                      PackedBytes packed) {
  // What the model copied as floats is F32 in nearly every file; its pages in the file are not used any more.
  const int64_t in_file = std::max<int64_t>(0, tensor_bytes(file) - packed.in_file - float_bytes);
  return {{"weights", in_file + packed.own + float_bytes, in_file + packed.in_cache},
          {"vocabulary", vocabulary_bytes, 0}};
}

void check_fits(const std::vector<MemoryItem>& session, int64_t n_ctx, int64_t machine_bytes) {
  double needed = 0;  // sums of what a file claims may exceed 64 bits
  std::string parts;
  constexpr double kMiB = 1024.0 * 1024.0;
  for (const MemoryItem& item : session) {
    needed += static_cast<double>(item.size_bytes);
    parts += fmt::format("{}{} {:.0f} MiB", parts.empty() ? "" : ", ", item.what,
                         static_cast<double>(item.size_bytes) / kMiB);
  }
  if (machine_bytes <= 0 || needed <= static_cast<double>(machine_bytes)) return;
  throw Error(ErrorCode::out_of_memory,
              fmt::format("a context of {} tokens needs {:.0f} MiB ({}), but this machine has {:.0f} MiB: choose a "
                          "smaller one (-c)",
                          n_ctx, needed / kMiB, parts, static_cast<double>(machine_bytes) / kMiB));
}

std::vector<MemoryItem> session_memory(const SessionPlan& plan, const Model& model, const Backend& backend) {
  const StateLayout layout = model.state_layout();
  const int64_t n_vocab = model.config().n_vocab;
  const int64_t kv = plan.n_kv_blocks() * layout.kv_block_bytes(plan.key_type, plan.value_type) +
                     layout.key_centre_bytes(plan.key_type);
  const int64_t logits = 4 * n_vocab * plan.max_logit_rows;
  const int64_t scratch = model.scratch_bytes(plan.n_batch, plan.max_logit_rows) + logits +
                          backend.workspace_bytes(work_limits(plan, model));
  return {{"KV", kv, 0},
          {"recurrent state", layout.recurrent_bytes(), 0},
          {"scratch", scratch, 0},
          {"sampler", Sampler::size_bytes(n_vocab), 0}};
}

std::vector<MemoryItem> estimate_memory(const EngineOptions& engine, const SessionOptions& options) {
  const gguf::File file = open_source(engine.model);
  const std::unique_ptr<Model> model = read_model(file);
  const SessionPlan plan = plan_session(options, *model);
  std::vector<std::string> ignored;  // inspect() shows them
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(file, *model, ignored);
  const std::unique_ptr<Backend> backend = make_backend(engine);
  const PackedBytes packed = plan_model(*model, file, *backend);
  std::vector<MemoryItem> items =
      engine_memory(file, model->float_bytes(), tokenizer ? tokenizer->size_bytes() : 0, packed);
  for (MemoryItem& item : session_memory(plan, *model, *backend)) items.push_back(std::move(item));
  return items;
}

}  // namespace kz
