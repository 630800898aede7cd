#include "text/special_ids.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>

namespace kz::text {
namespace {

constexpr std::array<std::string_view, 18> kEndTexts{
    "<|eot_id|>", "<|im_end|>",    "<|end|>", "<|return|>",      "<|call|>",           "<|flush|>",
    "<|calls|>",  "<end_of_turn>", "</s>",    "<|endoftext|>",   "<|eom_id|>",         "<EOT>",
    "_<EOT>",     "[EOT]",         "[EOS]",   "<|end_of_text|>", "<end_of_utterance>", "<eos>"};

class Finder {
 public:
  Finder(const VocabularyData& data, const TokenTable& tokens) : data_(data), tokens_(tokens) {}

  int32_t valid(const std::optional<int64_t>& id) const {
    return id && *id >= 0 && *id < tokens_.size() ? static_cast<int32_t>(*id) : -1;
  }

  /// A token of this text that is more than text: an ordinary `</s>` (Qwen2 has one) ends nothing. A vocabulary
  /// without types cannot tell the two apart.
  int32_t by_text(std::string_view text) const {
    const int32_t id = tokens_.texts().find(text);
    return id >= 0 && (data_.types.empty() || tokens_.type(id) != TokenType::normal) ? id : -1;
  }

  int32_t valid_or_text(const std::optional<int64_t>& id, std::initializer_list<std::string_view> texts) const {
    if (valid(id) >= 0) return valid(id);
    for (const std::string_view text : texts) {
      if (by_text(text) >= 0) return by_text(text);
    }
    return -1;
  }

 private:
  const VocabularyData& data_;
  const TokenTable& tokens_;
};

std::vector<int32_t> find_ends(const VocabularyData& data, const Finder& find, int32_t eos) {
  std::vector<int32_t> ends{eos,
                            find.valid(data.eot),
                            find.valid(data.eom),
                            find.valid_or_text(data.fim_pad, {"<|fim_pad|>"}),
                            find.valid_or_text(data.fim_rep, {"<|fim_repo|>", "<|repo_name|>", "<reponame>"}),
                            find.valid_or_text(data.fim_sep, {"<|file_sep|>"})};
  for (const std::string_view text : kEndTexts) ends.push_back(find.by_text(text));
  std::erase_if(ends, [](int32_t id) { return id < 0; });
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  ends.shrink_to_fit();
  return ends;
}

}  // namespace

SpecialIds find_special_ids(const VocabularyData& data, const TokenTable& tokens, Spelling spelling) {
  const Finder find(data, tokens);
  SpecialIds ids{find.valid(data.bos), find.valid(data.eos), find.valid(data.unk), {}};
  const auto fall_back = [&](int32_t& id, int32_t otherwise) {
    if (id < 0 && otherwise < tokens.size()) id = otherwise;
  };
  if (spelling == Spelling::space_marks) {
    fall_back(ids.bos, 1);
    fall_back(ids.eos, 2);
    fall_back(ids.unknown, 0);
  } else {
    constexpr int32_t kFirstByteLevelId = 11;  // of the vocabularies that files without these keys had
    if (kFirstByteLevelId < tokens.size() && tokens.is_hidden(kFirstByteLevelId)) {
      fall_back(ids.bos, kFirstByteLevelId);
      fall_back(ids.eos, kFirstByteLevelId);
    }
  }
  ids.ends = find_ends(data, find, ids.eos);
  return ids;
}

}  // namespace kz::text
