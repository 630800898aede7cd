// Which ids have a role: beginning, end, unknown; and every id that ends a generation.
#pragma once

#include <cstdint>
#include <vector>

#include "text/token_table.h"
#include "text/tokenizer.h"

namespace kz::text {

struct SpecialIds {
  int32_t bos = -1, eos = -1, unknown = -1;
  std::vector<int32_t> ends;  ///< ascending
};

/// Ids outside the vocabulary count as absent. An absent BOS or EOS is token 11 of a byte-level vocabulary if that is
/// no ordinary text, and 1 and 2 (unknown: 0) of a SentencePiece vocabulary.
SpecialIds find_special_ids(const VocabularyData& data, const TokenTable& tokens, Spelling spelling);

}  // namespace kz::text
