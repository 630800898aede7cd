// Vocabulary: text and ids of a file without its model.
#include <fmt/format.h>
#include <kazeia/engine.h>

#include "engine/engine_core.h"
#include "engine/vocabulary.h"
#include "text/tokenizer.h"

namespace kz {

struct Vocabulary::Impl {
  explicit Impl(const VocabularyData& data) : tokenizer(data) {}
  Tokenizer tokenizer;
};

Vocabulary::Vocabulary(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Vocabulary::~Vocabulary() = default;

std::unique_ptr<Vocabulary> Vocabulary::open(const ModelSource& source) {
  const gguf::File file = open_source(source);
  if (!file.has("tokenizer.ggml.model")) {
    throw Error(ErrorCode::unsupported, fmt::format("{}: the file holds no vocabulary", file.name()));
  }
  return std::unique_ptr<Vocabulary>(new Vocabulary(std::make_unique<Impl>(read_vocabulary(file))));
}

std::vector<int32_t> Vocabulary::tokenize(std::string_view text, TokenizeOptions options) const {
  return impl_->tokenizer.encode(text, {options.parse_special, options.add_special});
}

std::string Vocabulary::detokenize(std::span<const int32_t> ids, bool show_special) const {
  for (const int32_t id : ids) {
    if (id >= 0 && id < impl_->tokenizer.size()) continue;
    throw Error(ErrorCode::bad_argument, fmt::format("token {} is not in the vocabulary, expected an id from 0 to {}",
                                                     id, impl_->tokenizer.size() - 1));
  }
  return impl_->tokenizer.decode(ids, show_special);
}

int64_t Vocabulary::size() const { return impl_->tokenizer.size(); }

}  // namespace kz
