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
  std::vector<int32_t> types;  ///< empty, or one per token
  std::vector<float> scores;   ///< empty, or one per token
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

  /// Any bytes are accepted; what is not UTF-8 becomes byte tokens. n log n in the longest word, linear in the number
  /// of words; stack use constant. Throws Error(bad_argument) above 715 827 882 bytes (ids are counted in 31 bits).
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;

  /// The bytes of all tokens, one after the other. Control, unknown and unused tokens are shown only if asked; ids
  /// outside the vocabulary have no text. Where the vocabulary puts a space before a text, the first one is taken off.
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

/// Turns a stream of token bytes into complete UTF-8 text: never half a character, nothing lost. Bytes that cannot
/// become valid any more are replaced by U+FFFD, one for each maximal subpart (Unicode 3.9, as browsers do); the
/// result does not depend on how the bytes are cut.
class StreamDecoder {
 public:
  /// Appends bytes; returns the text that is complete now. At most three bytes are held back.
  std::string push(std::string_view bytes);
  /// What is left at the end: an incomplete sequence becomes one U+FFFD.
  std::string finish();

 private:
  std::string held_;
};

/// Keeps text back while it may still become a stop string. Which one matches does not depend on how the text is cut:
/// it is the match that ends first, and of those that end at the same place the longest.
class StopMatcher {
 public:
  /// Empty stop strings and those that are not UTF-8 match nothing.
  explicit StopMatcher(std::vector<std::string> stops);
  /// Appends text (complete UTF-8); returns what can be shown. When a stop string is complete, stopped() is true and
  /// the text before it has been returned; everything after it is dropped.
  std::string push(std::string_view text);
  std::string finish();  ///< the held text, at a normal end
  bool stopped() const { return stopped_; }

 private:
  struct Stop {
    std::string text;
    std::vector<size_t> border;  ///< of each prefix: the length of its longest proper prefix that is its suffix too
    size_t matched = 0;          ///< how much of the text is a suffix of what was pushed
  };
  size_t advance(char c);

  std::vector<Stop> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace kz
