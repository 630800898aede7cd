#include "model/config_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "gguf/printable.h"

namespace kz {
namespace {

// Far above any real model, and low enough that products of a few of them stay within 64 bits.
constexpr int64_t kMaxBlocks = 512;
constexpr int64_t kMaxWidth = int64_t{1} << 20;
constexpr int64_t kMaxFeedForward = int64_t{1} << 22;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 1 << 14;
constexpr int64_t kMaxContext = int64_t{1} << 31;
constexpr int64_t kMaxVocabulary = int64_t{1} << 26;

/// The one value of all blocks, zeros apart; notes a problem when there is none or when they differ.
int64_t single_value(ConfigReader& read, std::string_view key, const std::vector<int64_t>& values, ZeroHeads zeros) {
  int64_t found = 0;
  for (const int64_t value : values) {
    if (value == 0 && zeros == ZeroHeads::refused) {
      read.expect(false, key, "is 0 for a layer, expected at least 1");
      return 1;
    }
    if (value == 0) continue;
    if (found != 0 && value != found) {
      read.unsupported(key, fmt::format("differs between layers ({} and {})", found, value));
      return found;
    }
    found = value;
  }
  read.expect(found > 0, key, "is 0, expected at least 1");
  return std::max<int64_t>(found, 1);
}

/// The tokens of the tokenizer decide; a file without one is taken at its word, or by its embedding table.
int64_t read_vocabulary_size(ConfigReader& read) {
  const gguf::File& file = read.file();
  if (const gguf::KeyValue* tokens = file.find("tokenizer.ggml.tokens"); tokens != nullptr && tokens->count > 0) {
    return static_cast<int64_t>(std::min<uint64_t>(tokens->count, static_cast<uint64_t>(kMaxVocabulary)));
  }
  if (read.has("vocab_size")) return read.integer("vocab_size", 1, kMaxVocabulary);
  const gguf::TensorInfo* table = file.find_tensor("token_embd.weight");
  return table != nullptr ? std::clamp<int64_t>(table->ne[1], 1, kMaxVocabulary) : 1;
}

void read_head_dims(ConfigReader& read, ModelConfig& config) {
  const bool divides = config.n_embd % config.n_heads == 0;
  const int64_t fallback = std::clamp<int64_t>(config.n_embd / config.n_heads, 1, kMaxHeadDim);
  config.key_dim = read.integer_or("attention.key_length", fallback, 1, kMaxHeadDim);
  config.value_dim = read.integer_or("attention.value_length", fallback, 1, kMaxHeadDim);
  if (!read.ok()) return;
  const bool given = read.has("attention.key_length") && read.has("attention.value_length");
  read.expect(
      given || divides, "attention.key_length",
      fmt::format("is absent and embedding_length {} is no multiple of head_count {}", config.n_embd, config.n_heads));
  read.expect(config.key_dim % 2 == 0, "attention.key_length", fmt::format("is {}, expected even", config.key_dim));
}

void read_heads(ConfigReader& read, CommonConfig& common, ZeroHeads zeros) {
  ModelConfig& config = common.model;
  common.n_heads = read.per_layer("attention.head_count", config.n_layers, 0, kMaxHeads);
  config.n_heads = single_value(read, "attention.head_count", common.n_heads, zeros);
  common.n_kv_heads = read.per_layer("attention.head_count_kv", config.n_layers, 0, kMaxHeads, config.n_heads);
  config.n_kv_heads = single_value(read, "attention.head_count_kv", common.n_kv_heads, zeros);
  if (!read.ok()) return;
  read.expect(config.n_heads % config.n_kv_heads == 0, "attention.head_count",
              fmt::format("is {}, expected a multiple of head_count_kv {}", config.n_heads, config.n_kv_heads));
}

}  // namespace

void ConfigReader::note(const Error& error) {
  std::string text = error.what();
  const std::string prefix = gguf::printable_path(file_.name()) + ": ";
  if (text.starts_with(prefix)) text.erase(0, prefix.size());
  problems_.add(std::move(text));
}

int64_t ConfigReader::integer(std::string_view key, int64_t lo, int64_t hi) {
  if (!expect(has(key), key, "is missing")) return lo;
  return integer_or(key, lo, lo, hi);
}

int64_t ConfigReader::integer_or(std::string_view key, int64_t fallback, int64_t lo, int64_t hi) {
  try {
    return file_.integer_or(full_key(key), fallback, lo, hi);
  } catch (const Error& error) {
    note(error);
    return lo;
  }
}

double ConfigReader::number(std::string_view key) {
  if (!expect(has(key), key, "is missing")) return 0;
  return number_or(key, 0);
}

double ConfigReader::number_or(std::string_view key, double fallback) {
  try {
    return file_.number_or(full_key(key), fallback);
  } catch (const Error& error) {
    note(error);
    return fallback;
  }
}

std::string ConfigReader::text_or(std::string_view key, std::string_view fallback) {
  try {
    return std::string(file_.text_or(full_key(key), fallback));
  } catch (const Error& error) {
    note(error);
    return std::string(fallback);
  }
}

std::optional<std::vector<int64_t>> ConfigReader::array(std::string_view key, int64_t lo, int64_t hi) {
  std::vector<int64_t> values;
  try {
    values = file_.integers(full_key(key));
  } catch (const Error& error) {
    note(error);
    return {};
  }
  for (const int64_t value : values) {
    if (!expect(value >= lo && value <= hi, key, fmt::format("holds {}, expected {} to {}", value, lo, hi))) return {};
  }
  return values;
}

std::vector<int64_t> ConfigReader::integers(std::string_view key, int64_t lo, int64_t hi) {
  if (!has(key)) return {};
  return array(key, lo, hi).value_or(std::vector<int64_t>{});
}

std::vector<int64_t> ConfigReader::per_layer(std::string_view key, int64_t n, int64_t lo, int64_t hi,
                                             std::optional<int64_t> fallback) {
  const std::vector<int64_t> harmless(static_cast<size_t>(n), fallback.value_or(std::max<int64_t>(lo, 1)));
  if (!has(key)) {
    expect(fallback.has_value(), key, "is missing");
    return harmless;
  }
  const std::optional<std::vector<int64_t>> values = array(key, lo, hi);
  if (!values) return harmless;
  const bool scalar = file_.find(full_key(key))->type != gguf::ValueType::array;
  if (scalar && values->size() == 1) return std::vector<int64_t>(harmless.size(), values->front());
  if (values->size() == harmless.size()) return *values;
  if (ok()) {  // otherwise the number of layers itself may be wrong
    expect(false, key, fmt::format("has {} values, expected one for each of {} layers", values->size(), n));
  }
  return harmless;
}

bool ConfigReader::expect(bool ok, std::string_view key, std::string_view problem) {
  if (!ok) problems_.add(fmt::format("key '{}' {}", full_key(key), problem));
  return ok;
}

void ConfigReader::unsupported(std::string_view key, std::string_view problem) {
  problems_.add_unsupported(fmt::format("key '{}' {}", full_key(key), problem));
}

CommonConfig read_common_config(ConfigReader& read, ZeroHeads zero_heads) {
  CommonConfig common;
  ModelConfig& config = common.model;
  config.architecture = read.architecture();
  if (const gguf::KeyValue* name = read.file().find("general.name"); name != nullptr) {
    if (name->type == gguf::ValueType::string) config.name = read.file().text("general.name");
  }
  config.n_layers = read.integer("block_count", 1, kMaxBlocks);
  config.n_embd = read.integer("embedding_length", 1, kMaxWidth);
  config.n_ctx_train = read.integer("context_length", 1, kMaxContext);
  common.n_ff = read.per_layer("feed_forward_length", config.n_layers, 1, kMaxFeedForward);
  config.n_ff = *std::max_element(common.n_ff.begin(), common.n_ff.end());
  read_heads(read, common, zero_heads);
  read_head_dims(read, config);
  config.n_vocab = read_vocabulary_size(read);
  const double eps = read.number("attention.layer_norm_rms_epsilon");
  read.expect(eps >= 0 && eps < 1, "attention.layer_norm_rms_epsilon", fmt::format("is {}, expected 0 to 1", eps));
  config.norm_eps = static_cast<float>(eps);
  config.tied = read.file().find_tensor("output.weight") == nullptr;
  if (read.integer_or("expert_count", 0, 0, kMaxFeedForward) > 0) {
    read.unsupported("expert_count", "is not 0: mixture-of-experts models are not supported");
  }
  return common;
}

}  // namespace kz
