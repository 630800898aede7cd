// The vocabularies that the tests use; each is opened once per process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace kz::testing {

/// The tokenizer of a GGUF file, or null when there is no such file.
const Tokenizer* tokenizer_of(const std::string& path);

inline const Tokenizer& qwen3() { return *tokenizer_of(KZ_TEST_DATA "/tokenizer/qwen3-vocab.gguf"); }
inline const Tokenizer& qwen35() { return *tokenizer_of(KZ_TEST_DATA "/tokenizer/qwen35-vocab.gguf"); }
inline const Tokenizer& gpt2() { return *tokenizer_of(KZ_TEST_DATA "/tokenizer/gpt-2-vocab.gguf"); }

/// A file of the folder where scripts/fetch_model keeps public models.
std::string fetched_model(const std::string& name);
/// A file of the folder that the environment variable KAZEIA_TEST_EXTRA names, for data that cannot be published here;
/// empty when it is not set.
std::string extra_file(const std::string& name);

using Ids = std::vector<int32_t>;
/// The ids, at most the first thousand of them, for messages.
std::string show(const Ids& ids);

/// `n_bytes` of text of all kinds (words, digits, code, scripts, white space), the same in each run.
std::string mixed_text(size_t n_bytes, unsigned seed = 1);
/// Random bytes, of which some begin like UTF-8 sequences.
std::string random_bytes(size_t n, unsigned seed);

}  // namespace kz::testing
