#include "engine/model_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/engine_core.h"
#include "engine/file_type.h"
#include "engine/vocabulary.h"

namespace kz {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "blk.17.attn_q.weight" -> "blk.*.attn_q.weight"
std::string kind_of(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  if (!name.starts_with(kBlock)) return std::string(name);
  size_t end = kBlock.size();
  while (end < name.size() && is_digit(name[end])) ++end;
  if (end == kBlock.size()) return std::string(name);
  return fmt::format("blk.*{}", name.substr(end));
}

std::string shape_of(const gguf::TensorInfo& tensor) {
  std::string text;
  for (int i = 0; i < std::max(tensor.n_dims, 1); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : " x ", tensor.ne[static_cast<size_t>(i)]);
  }
  return text;
}

/// Groups by kind, type and shape; kinds stand in the order in which the file first names them.
std::vector<TensorSummary> summarise(const gguf::File& file) {
  std::vector<std::string> kinds;
  std::map<std::string, std::vector<TensorSummary>> groups_of;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    const std::string kind = kind_of(tensor.name);
    std::vector<TensorSummary>& groups = groups_of[kind];
    if (groups.empty()) kinds.push_back(kind);
    const std::string type(dtype_name(tensor.dtype)), shape = shape_of(tensor);
    auto at = std::find_if(groups.begin(), groups.end(),
                           [&](const TensorSummary& group) { return group.type == type && group.shape == shape; });
    if (at == groups.end()) at = groups.insert(groups.end(), TensorSummary{kind, type, shape, 0, 0});
    at->count += 1;
    at->size_bytes += static_cast<int64_t>(tensor.size_bytes);
  }
  std::vector<TensorSummary> all;
  for (const std::string& kind : kinds) {
    const std::vector<TensorSummary>& groups = groups_of[kind];
    all.insert(all.end(), groups.begin(), groups.end());
  }
  return all;
}

void describe_file(const gguf::File& file, ModelInfo& info) {
  info.path = file.name();
  info.file_type = file_type_of(file);
  info.gguf_version = file.version();
  info.n_shards = file.n_shards();
  for (int shard = 0; shard < file.n_shards(); ++shard) info.files.push_back(file.shard_name(shard));
  info.file_bytes = static_cast<int64_t>(file.size_bytes());
  info.n_tensors = static_cast<int64_t>(file.tensors().size());
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    info.n_parameters += tensor.ne[0] * tensor.ne[1] * tensor.ne[2] * tensor.ne[3];
    info.weight_bytes += static_cast<int64_t>(tensor.size_bytes);
  }
  info.tensors = summarise(file);
}

void describe_model(const Model& model, ModelInfo& info) {
  const ModelConfig& config = model.config();
  info.architecture = config.architecture;
  info.name = config.name;
  info.n_layers = config.n_layers;
  const StateLayout layout = model.state_layout();
  info.n_attention_layers = static_cast<int64_t>(layout.attention.size());
  info.n_delta_layers = static_cast<int64_t>(layout.delta.size());
  info.n_embd = config.n_embd;
  info.n_ff = config.n_ff;
  info.n_heads = config.n_heads;
  info.n_kv_heads = config.n_kv_heads;
  info.key_dim = config.key_dim;
  info.value_dim = config.value_dim;
  info.n_vocab = config.n_vocab;
  info.n_ctx_train = config.n_ctx_train;
  info.tied = config.tied;
  info.notes = model.notes();
}

void describe_vocabulary(const gguf::File& file, const Tokenizer* tokenizer, ModelInfo& info) {
  info.tokenizer_model = file.text_or("tokenizer.ggml.model", "");
  info.tokenizer_pre = file.text_or("tokenizer.ggml.pre", "");
  info.chat_template = chat_template(file);
  if (const gguf::KeyValue* tokens = file.find("tokenizer.ggml.tokens")) {
    info.n_tokens = static_cast<int64_t>(tokens->count);
  }
  if (const gguf::KeyValue* merges = file.find("tokenizer.ggml.merges")) {
    info.n_merges = static_cast<int64_t>(merges->count);
  }
  if (tokenizer == nullptr) return;
  info.bos = tokenizer->bos();
  info.eos = tokenizer->eos();
  info.adds_bos = tokenizer->adds_bos();
  const std::span<const int32_t> ends = tokenizer->end_tokens();
  info.end_tokens.assign(ends.begin(), ends.end());
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const gguf::File& file, const Model& model, std::vector<std::string>& notes) {
  if (!file.has("tokenizer.ggml.model")) return nullptr;
  auto tokenizer = std::make_unique<Tokenizer>(read_vocabulary(file, &notes));
  if (tokenizer->size() > model.config().n_vocab) {
    throw Error(ErrorCode::bad_file, fmt::format("{}: the vocabulary has {} tokens, but token_embd.weight only {} rows",
                                                 file.name(), tokenizer->size(), model.config().n_vocab));
  }
  return tokenizer;
}

ModelInfo describe(const gguf::File& file, const Model& model, const Tokenizer* tokenizer) {
  ModelInfo info;
  describe_file(file, info);
  describe_model(model, info);
  describe_vocabulary(file, tokenizer, info);
  return info;
}

ModelInfo inspect(const ModelSource& source) {
  const gguf::File file = open_source(source);
  const std::unique_ptr<Model> model = read_model(file);
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<std::string> notes;
  try {
    tokenizer = open_tokenizer(file, *model, notes);
    if (!tokenizer) notes.push_back("the file holds no vocabulary: it runs on token ids only");
  } catch (const Error& error) {  // the rest of the file is still worth showing
    notes.push_back(error.what());
  }
  ModelInfo info = describe(file, *model, tokenizer.get());
  info.notes.insert(info.notes.end(), notes.begin(), notes.end());
  return info;
}

}  // namespace kz
