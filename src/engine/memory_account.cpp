#include "engine/memory_account.h"

#include "cpu/cpu_backend.h"
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

/// Vectors (norms, biases, ...) and the small convolution kernels become F32 copies; matrices stay in the file.
int64_t copied_floats_bytes(const gguf::File& file) {
  int64_t size_bytes = 0;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    const bool is_copied = tensor.n_dims == 1 || tensor.name.find("ssm_conv1d") != std::string_view::npos;
    if (is_copied) size_bytes += 4 * tensor.ne[0] * tensor.ne[1];
  }
  return size_bytes;
}

}  // namespace

std::vector<MemoryItem> engine_memory(const gguf::File& file, int64_t float_bytes, int64_t vocabulary_bytes,
                                      PackedBytes packed) {
  const int64_t in_file = tensor_bytes(file) - packed.in_file;
  return {{"weights", in_file + packed.own + float_bytes, in_file}, {"vocabulary", vocabulary_bytes, 0}};
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

std::vector<MemoryItem> estimate_memory(const ModelSource& source, const SessionOptions& options) {
  const gguf::File file = open_source(source);
  const std::unique_ptr<Model> model = read_model(file);
  const SessionPlan plan = plan_session(options, *model);
  std::vector<std::string> ignored;  // inspect() shows them
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(file, *model, ignored);
  const std::unique_ptr<Backend> backend = make_cpu_backend({});
  std::vector<MemoryItem> items =
      engine_memory(file, copied_floats_bytes(file), tokenizer ? tokenizer->size_bytes() : 0);
  for (MemoryItem& item : session_memory(plan, *model, *backend)) items.push_back(std::move(item));
  return items;
}

}  // namespace kz
