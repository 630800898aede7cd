#include "engine/vocabulary.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "core/error.h"
#include "gguf/printable.h"

namespace kz {
namespace {

std::string full_key(std::string_view key) { return fmt::format("tokenizer.ggml.{}", key); }

struct IdKey {
  const char* key;
  std::optional<int64_t> VocabularyData::* field;
};

constexpr std::array kIdKeys{
    IdKey{"bos_token_id", &VocabularyData::bos},
    IdKey{"eos_token_id", &VocabularyData::eos},
    IdKey{"eot_token_id", &VocabularyData::eot},
    IdKey{"eom_token_id", &VocabularyData::eom},
    IdKey{"unknown_token_id", &VocabularyData::unk},
    IdKey{"seperator_token_id", &VocabularyData::sep},  // spelled so in the files
    IdKey{"padding_token_id", &VocabularyData::pad},
    IdKey{"fim_pre_token_id", &VocabularyData::fim_pre},
    IdKey{"fim_suf_token_id", &VocabularyData::fim_suf},
    IdKey{"fim_mid_token_id", &VocabularyData::fim_mid},
    IdKey{"fim_pad_token_id", &VocabularyData::fim_pad},
    IdKey{"fim_rep_token_id", &VocabularyData::fim_rep},
    IdKey{"fim_sep_token_id", &VocabularyData::fim_sep},
};

struct FlagKey {
  const char* key;
  std::optional<bool> VocabularyData::* field;
};

constexpr std::array kFlagKeys{
    FlagKey{"add_bos_token", &VocabularyData::add_bos},
    FlagKey{"add_eos_token", &VocabularyData::add_eos},
    FlagKey{"add_space_prefix", &VocabularyData::add_space_prefix},
};

void check_model(const gguf::File& file, std::string_view model) {
  if (model == "gpt2" || model == "llama") return;
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: tokenizer.ggml.model: the tokenizer model '{}' is not supported, known are gpt2, llama",
                          file.name(), gguf::printable(model)));
}

/// An array of one value per token: absent, or at least as long as the vocabulary. Told from the directory, before the
/// values are read.
bool has_per_token(const gguf::File& file, const std::string& key, size_t n_tokens) {
  const gguf::KeyValue* kv = file.find(key);
  if (kv == nullptr) return false;
  if (kv->count < n_tokens) {
    throw Error(ErrorCode::bad_file, fmt::format("{}: {}: the array is shorter than the vocabulary: {} entries for {} "
                                                 "tokens",
                                                 file.name(), key, kv->count, n_tokens));
  }
  return true;
}

std::vector<int32_t> read_types(const gguf::File& file, const std::string& key, size_t n_tokens) {
  std::vector<int32_t> types;
  if (!has_per_token(file, key, n_tokens)) return types;
  types.reserve(n_tokens);
  for (const int64_t type : file.integers(key)) {
    if (types.size() == n_tokens) break;
    // What does not fit is no type anyway and is refused by the tokenizer.
    types.push_back(std::in_range<int32_t>(type) ? static_cast<int32_t>(type) : -1);
  }
  return types;
}

std::optional<int64_t> read_id(const gguf::File& file, const std::string& key, size_t n_tokens,
                               std::vector<std::string>* notes) {
  if (!file.has(key)) return std::nullopt;
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min(), kHighest = std::numeric_limits<int64_t>::max();
  const int64_t id = file.integer(key, kLowest, kHighest);
  if (id >= 0 && static_cast<uint64_t>(id) < n_tokens) return id;
  if (notes != nullptr) {
    notes->push_back(fmt::format("{} is {}, outside the vocabulary of {} tokens: ignored", key, id, n_tokens));
  }
  return std::nullopt;
}

}  // namespace

VocabularyData read_vocabulary(const gguf::File& file, std::vector<std::string>* notes) {
  VocabularyData data;
  data.source = gguf::printable_path(file.name());
  data.model = file.text(full_key("model"));
  check_model(file, data.model);
  data.pre = file.text_or(full_key("pre"), "");
  data.tokens = file.texts(full_key("tokens"));
  const size_t n_tokens = data.tokens.size();
  data.types = read_types(file, full_key("token_type"), n_tokens);
  if (has_per_token(file, full_key("scores"), n_tokens)) {
    data.scores = file.floats(full_key("scores"));
    data.scores.resize(n_tokens);
  }
  if (file.has(full_key("merges"))) data.merges = file.texts(full_key("merges"));
  for (const IdKey& id : kIdKeys) data.*id.field = read_id(file, full_key(id.key), n_tokens, notes);
  for (const FlagKey& flag : kFlagKeys) {
    if (file.has(full_key(flag.key))) data.*flag.field = file.boolean_or(full_key(flag.key), false);
  }
  return data;
}

std::string_view chat_template(const gguf::File& file, std::string_view name) {
  return file.text_or(fmt::format("tokenizer.chat_template{}{}", name.empty() ? "" : ".", name), "");
}

}  // namespace kz
