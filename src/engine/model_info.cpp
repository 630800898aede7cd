#include "engine/model_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/engine_core.h"
#include "engine/file_type.h"
#include "engine/vocabulary.h"
#include "gguf/printable.h"

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

/// A key that holds one number, 0 when it does not.
int64_t number_or_zero(const gguf::File& file, const std::string& key) {
  try {
    return file.integer_or(key, 0, 0, INT64_MAX);
  } catch (const Error&) {
    return 0;
  }
}

/// What the keys alone say, for a file that no model was made of.
void describe_keys(const gguf::File& file, ModelInfo& info) {
  try {
    info.architecture = file.text_or("general.architecture", "");
    info.name = file.text_or("general.name", "");
  } catch (const Error&) {  // not a text: as good as absent
  }
  const auto number = [&](const char* key) {
    return number_or_zero(file, fmt::format("{}.{}", info.architecture, key));
  };
  info.n_layers = number("block_count");
  info.n_embd = number("embedding_length");
  info.n_ff = number("feed_forward_length");
  info.n_heads = number("attention.head_count");
  info.n_kv_heads = number("attention.head_count_kv");
  info.key_dim = number("attention.key_length");
  info.value_dim = number("attention.value_length");
  info.n_ctx_train = number("context_length");
  const gguf::TensorInfo* table = file.find_tensor("token_embd.weight");
  if (table != nullptr) info.n_vocab = table->ne[1];
  info.tied = table != nullptr && file.find_tensor("output.weight") == nullptr;
}

struct Finding {
  std::string text;
  bool is_damaged = false;
};

/// The model with its tensors checked; null when the file has no configuration that this engine knows. Either way
/// `problem` says why it cannot run.
std::unique_ptr<Model> checked_model(const gguf::File& file, Finding& problem) {
  std::unique_ptr<Model> model;
  try {
    model = read_model(file);
    bind_model(*model, file, nullptr);
  } catch (const Error& error) {
    problem = {error.what(), error.code() == ErrorCode::bad_file};
  }
  if (!problem.text.empty() && file.tensors().empty()) {
    problem = {fmt::format("{}: the file holds no tensors, only {}", gguf::printable_path(file.name()),
                           file.has("tokenizer.ggml.model") ? "a vocabulary" : "keys"),
               false};
  }
  return model;
}

std::unique_ptr<Tokenizer> read_tokenizer(const gguf::File& file, std::vector<std::string>& notes) {
  if (!file.has("tokenizer.ggml.model")) return nullptr;
  return std::make_unique<Tokenizer>(read_vocabulary(file, &notes));
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const gguf::File& file, const Model& model, std::vector<std::string>& notes) {
  std::unique_ptr<Tokenizer> tokenizer = read_tokenizer(file, notes);
  if (!tokenizer) return nullptr;
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
  Finding problem;
  const std::unique_ptr<Model> model = checked_model(file, problem);
  std::unique_ptr<Tokenizer> tokenizer;
  std::vector<std::string> notes;
  try {
    tokenizer = model ? open_tokenizer(file, *model, notes) : read_tokenizer(file, notes);
    if (!tokenizer) notes.push_back("the file holds no vocabulary: it runs on token ids only");
  } catch (const Error& error) {  // the rest of the file is still worth showing
    if (problem.text.empty()) problem = {error.what(), error.code() == ErrorCode::bad_file};
  }
  ModelInfo info;
  if (model) {
    info = describe(file, *model, tokenizer.get());
  } else {
    describe_file(file, info);
    describe_keys(file, info);
    describe_vocabulary(file, tokenizer.get(), info);
  }
  info.notes.insert(info.notes.end(), notes.begin(), notes.end());
  info.problem = problem.text;
  info.is_damaged = problem.is_damaged;
  return info;
}

}  // namespace kz
