// Text <-> token ids. Knows no GGUF and no model: it is built from plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kz {

/// Token types as GGUF numbers them.
enum class TokenType : int32_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

/// A vocabulary as plain data. The views must live while the Tokenizer is built, not longer.
struct VocabularyData {
  std::string source;  ///< file name for messages
  std::string model;   ///< "gpt2" (byte-level BPE) or "llama" (SentencePiece BPE); others are refused by name
  std::string pre;     ///< pre-tokenizer name of byte-level BPE: "qwen2", "qwen35", "llama-bpe", "smollm", ...
  std::vector<std::string_view> tokens;
  std::vector<int32_t> types;    ///< empty, or one per token
  std::vector<float> scores;     ///< empty, or one per token
  std::vector<std::string_view> merges;
  std::optional<int64_t> bos, eos, eot, eom, unk, sep, pad, fim_pre, fim_suf, fim_mid, fim_pad, fim_rep, fim_sep;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

struct EncodeOptions {
  bool parse_special = false;  ///< match control tokens in the text (user-defined ones always are)
  bool add_special = false;    ///< put BOS / EOS where the vocabulary says so
};

/// Immutable; may be used by many threads at once.
class Tokenizer {
 public:
  /// Throws Error(bad_file) for a vocabulary that contradicts itself and Error(unsupported) for an unknown model or
  /// pre-tokenizer (it names the known ones).
  explicit Tokenizer(const VocabularyData& data);
  ~Tokenizer();

  /// Any bytes are accepted; what is not UTF-8 becomes byte tokens. Linear in the length, stack use constant.
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  /// The bytes of all tokens, one after the other. Control and unknown tokens are shown only if asked.
  std::string decode(std::span<const int32_t> ids, bool show_special = false) const;
  /// The bytes that one token adds to a text.
  std::string_view piece(int32_t id, bool show_special = false) const;

  int32_t size() const;
  std::string_view model() const;
  std::string_view pre() const;
  /// The token's text as the vocabulary spells it.
  std::string_view token_text(int32_t id) const;
  TokenType token_type(int32_t id) const;
  /// The id whose text is exactly this, or -1.
  int32_t find(std::string_view token_text) const;
  int32_t bos() const;  ///< -1 when absent, as for all below
  int32_t eos() const;
  bool adds_bos() const;
  bool adds_eos() const;
  /// True for every id that ends a generation (eos, eot, eom, fim_pad, ... and tokens known by their text).
  bool ends_generation(int32_t id) const;
  std::span<const int32_t> end_tokens() const;
  /// Bytes held by the tables (for the memory account).
  int64_t size_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Turns a stream of token bytes into complete UTF-8 text: never half a character, nothing lost.
class StreamDecoder {
 public:
  /// Appends bytes; returns the text that is complete now.
  std::string push(std::string_view bytes);
  /// What is left at the end: an incomplete sequence becomes U+FFFD.
  std::string finish();

 private:
  std::string held_;
};

/// Keeps text back while it may still become a stop string.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}
  /// Appends text; returns what can be shown. When a stop string is complete, stopped() is true and the text before
  /// it (the earliest match) has been returned.
  std::string push(std::string_view text);
  std::string finish();  ///< the held text, at a normal end
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace kz
