#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "text/bpe.h"
#include "text/byte_symbols.h"
#include "text/pre_tokenizer.h"
#include "text/shown.h"
#include "text/special_ids.h"
#include "text/special_tokens.h"
#include "text/spm.h"
#include "text/token_table.h"
#include "text/unicode.h"

namespace kz {
namespace {

using namespace text;  // NOLINT: the parts of a tokenizer

/// Texts grow by a factor of three at most (space marks, NFC), and no more tokens than bytes come out: all counts stay
/// below 2^31.
constexpr size_t kMostTextBytes = INT32_MAX / 3;

Spelling spelling_of(const VocabularyData& data) {
  if (data.model == "gpt2") return Spelling::byte_symbols;
  if (data.model == "llama") return Spelling::space_marks;
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: tokenizer.ggml.model: the tokenizer model '{}' is not supported, known are gpt2, llama",
                          data.source, shown(data.model)));
}

std::vector<uint8_t> mergeable_tokens(const TokenTable& tokens) {
  std::vector<uint8_t> mergeable(static_cast<size_t>(tokens.size()));
  for (int32_t id = 0; id < tokens.size(); ++id) {
    mergeable[static_cast<size_t>(id)] = !tokens.is_hidden(id) && tokens.type(id) != TokenType::byte;
  }
  return mergeable;
}

SpecialTokens special_tokens(const TokenTable& tokens) {
  std::vector<SpecialToken> found;
  for (int32_t id = 0; id < tokens.size(); ++id) {
    const TokenType type = tokens.type(id);
    const bool always = type == TokenType::user_defined;
    if (always || type == TokenType::control || type == TokenType::unknown) {
      found.push_back({tokens.texts()[id], id, always});
    }
  }
  return SpecialTokens(std::move(found));
}

}  // namespace

struct Tokenizer::Impl {
  explicit Impl(const VocabularyData& data);

  /// Byte-level: valid stretches are normalised and cut into words; what is not UTF-8 becomes byte tokens.
  void encode_bytes(std::string_view text, std::vector<int32_t>& out) const;
  void encode_valid(std::string_view text, BytePairEncoder::Scratch& scratch, std::vector<int32_t>& out) const;
  /// SentencePiece: a space before what begins a text or follows a special token, then spaces as marks.
  void encode_marks(std::string_view text, std::vector<int32_t>& out) const;
  void encode_fragment(std::string_view text, std::vector<int32_t>& out) const {
    if (!text.empty()) bpe ? encode_bytes(text, out) : encode_marks(text, out);
  }

  std::string model, pre;
  Spelling spelling;
  std::optional<PreTokenizer> pre_tokenizer;  // byte-level vocabularies have one
  TokenTable tokens;
  SpecialTokens specials;
  SpecialIds ids;
  std::vector<uint8_t> ends_generation;  // one per token
  std::vector<float> scores;             // the rest belongs to one kind of vocabulary or the other
  std::vector<uint8_t> mergeable;
  std::optional<BytePairEncoder> bpe;
  std::optional<SpmEncoder> spm;
  size_t longest_word = 0;  // spelled bytes of the longest token, where whole words are looked up
  bool adds_bos = false, adds_eos = false, adds_space = false;
};

Tokenizer::Impl::Impl(const VocabularyData& data)
    : model(data.model),
      pre(data.pre),
      spelling(spelling_of(data)),
      pre_tokenizer(spelling == Spelling::byte_symbols
                        ? std::optional<PreTokenizer>(std::in_place, data.pre, data.source)
                        : std::nullopt),
      tokens(data, spelling),
      specials(special_tokens(tokens)),
      ids(find_special_ids(data, tokens, spelling)),
      ends_generation(static_cast<size_t>(tokens.size())) {
  for (const int32_t id : ids.ends) ends_generation[static_cast<size_t>(id)] = 1;
  adds_eos = data.add_eos.value_or(false) && ids.eos >= 0;
  if (spelling == Spelling::byte_symbols) {
    bpe.emplace(tokens.texts(), data.merges, data.source);
    adds_bos = data.add_bos.value_or(pre_tokenizer->adds_bos()) && ids.bos >= 0;
    for (int32_t id = 0; id < tokens.size(); ++id) longest_word = std::max(longest_word, tokens.texts()[id].size());
    return;
  }
  mergeable = mergeable_tokens(tokens);
  scores = data.scores;
  scores.resize(static_cast<size_t>(tokens.size()), 0.0f);
  spm.emplace(SpmVocabulary{tokens.texts(), scores, mergeable, tokens.byte_tokens(), ids.unknown});
  adds_bos = data.add_bos.value_or(true) && ids.bos >= 0;
  adds_space = data.add_space_prefix.value_or(true);
}

void Tokenizer::Impl::encode_bytes(std::string_view text, std::vector<int32_t>& out) const {
  BytePairEncoder::Scratch scratch;
  while (!text.empty()) {
    const size_t length = valid_prefix(text);
    const std::string_view valid = text.substr(0, length);
    if (pre_tokenizer->normalises() && !surely_nfc(valid)) {
      encode_valid(nfc(valid), scratch, out);
    } else {
      encode_valid(valid, scratch, out);
    }
    text.remove_prefix(length);
    if (text.empty()) break;
    const Utf8Step broken = read_utf8(text, 0);
    for (const char c : text.substr(0, broken.length)) {
      const int32_t id = bpe->byte_token(static_cast<unsigned char>(c));
      if (id >= 0) out.push_back(id);
    }
    text.remove_prefix(broken.length);
  }
}

void Tokenizer::Impl::encode_valid(std::string_view text, BytePairEncoder::Scratch& scratch,
                                   std::vector<int32_t>& out) const {
  pre_tokenizer->split(text, [&](std::string_view word) {
    if (pre_tokenizer->ignores_merges() && word.size() <= longest_word) {
      const int32_t id = tokens.texts().find(spell(word));
      if (id >= 0 && !tokens.is_hidden(id)) return out.push_back(id);
    }
    bpe->encode(word, scratch, out);
  });
}

void Tokenizer::Impl::encode_marks(std::string_view text, std::vector<int32_t>& out) const {
  std::string marked;
  marked.reserve(text.size() + text.size() / 2 + kSpaceMark.size());
  if (adds_space) marked += kSpaceMark;
  for (const char c : text) {
    if (c == ' ') {
      marked += kSpaceMark;
    } else {
      marked += c;
    }
  }
  SpmEncoder::Scratch scratch;
  spm->encode(marked, scratch, out);
}

Tokenizer::Tokenizer(const VocabularyData& data) : impl_(std::make_unique<Impl>(data)) {}
Tokenizer::~Tokenizer() = default;

std::vector<int32_t> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > kMostTextBytes) {
    throw Error(ErrorCode::bad_argument,
                fmt::format("the text has {} bytes, expected at most {}", text.size(), kMostTextBytes));
  }
  std::vector<int32_t> ids;
  if (options.add_special && impl_->adds_bos) ids.push_back(impl_->ids.bos);
  size_t pos = 0;
  for (const SpecialMatch& match : impl_->specials.find(text, options.parse_special)) {
    impl_->encode_fragment(text.substr(pos, match.begin - pos), ids);
    ids.push_back(match.id);
    pos = match.end;
  }
  impl_->encode_fragment(text.substr(pos), ids);
  if (options.add_special && impl_->adds_eos) ids.push_back(impl_->ids.eos);
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool show_special) const {
  std::string text;
  bool at_start = impl_->adds_space;
  for (const int32_t id : ids) {
    std::string_view piece = impl_->tokens.piece(id, show_special);
    if (piece.empty()) continue;
    if (at_start && piece.front() == ' ' && impl_->tokens.type(id) == TokenType::normal) piece.remove_prefix(1);
    at_start = false;
    text += piece;
  }
  return text;
}

std::string_view Tokenizer::piece(int32_t id, bool show_special) const { return impl_->tokens.piece(id, show_special); }

int32_t Tokenizer::size() const { return impl_->tokens.size(); }
std::string_view Tokenizer::model() const { return impl_->model; }
std::string_view Tokenizer::pre() const { return impl_->pre; }

std::string_view Tokenizer::token_text(int32_t id) const {
  return impl_->tokens.contains(id) ? impl_->tokens.texts()[id] : std::string_view();
}

TokenType Tokenizer::token_type(int32_t id) const {
  return impl_->tokens.contains(id) ? impl_->tokens.type(id) : TokenType::unused;
}

int32_t Tokenizer::find(std::string_view token_text) const { return impl_->tokens.texts().find(token_text); }
int32_t Tokenizer::bos() const { return impl_->ids.bos; }
int32_t Tokenizer::eos() const { return impl_->ids.eos; }
bool Tokenizer::adds_bos() const { return impl_->adds_bos; }
bool Tokenizer::adds_eos() const { return impl_->adds_eos; }

bool Tokenizer::ends_generation(int32_t id) const {
  return impl_->tokens.contains(id) && impl_->ends_generation[static_cast<size_t>(id)] != 0;
}

std::span<const int32_t> Tokenizer::end_tokens() const { return impl_->ids.ends; }

int64_t Tokenizer::size_bytes() const {
  const Impl& t = *impl_;
  return t.tokens.size_bytes() + t.specials.size_bytes() + (t.bpe ? t.bpe->size_bytes() : 0) +
         static_cast<int64_t>(sizeof(Impl) + t.ends_generation.capacity() + t.mergeable.capacity() +
                              t.scores.capacity() * sizeof(float) + t.ids.ends.capacity() * sizeof(int32_t));
}

}  // namespace kz
