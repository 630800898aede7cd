// Cuts text into words, inside which byte-pair merges stay. See docs/decisions/pre-tokenizer.md.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace kz::text {

/// How one family of vocabularies splits text. The rules are those of the `tokenizer.ggml.pre` names; each is given as
/// the regular expression that its authors publish and is matched by a scanner of constant stack and linear time.
class PreTokenizer {
 public:
  /// Known names and their aliases; an empty name means "default". Throws Error(unsupported) that lists the known ones.
  /// `source` is the file for the message.
  PreTokenizer(std::string_view name, std::string_view source);

  /// Hands over the words of a valid UTF-8 text in order; together they are the text.
  void split(std::string_view text, const std::function<void(std::string_view word)>& word) const;

  std::string_view name() const { return name_; }          ///< the name of the rule, not the alias
  bool ignores_merges() const { return ignores_merges_; }  ///< a word that is a token is taken whole
  bool adds_bos() const { return adds_bos_; }              ///< unless the file says otherwise
  bool normalises() const { return normalises_; }          ///< text is brought to NFC first

  /// End of the piece that begins at pos < text.size().
  using Step = size_t (*)(std::string_view text, size_t pos);

 private:
  std::string_view name_;
  std::span<const Step> steps_;  ///< each one splits the pieces of the one before
  bool ignores_merges_ = false, adds_bos_ = false, normalises_ = false;
};

}  // namespace kz::text
