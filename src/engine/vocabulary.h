// The vocabulary of a GGUF file, as plain data for the tokenizer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "text/tokenizer.h"

namespace kz {

/// Reads the keys `tokenizer.ggml.*`. The views belong to the file. Throws Error(unsupported) for a tokenizer model
/// that is not known, before anything else of it is read, and Error(bad_file) for keys of the wrong type and arrays
/// shorter than the vocabulary. Ids outside the vocabulary are left out; `notes`, if given, gets a line for each.
VocabularyData read_vocabulary(const gguf::File& file, std::vector<std::string>* notes = nullptr);

/// The chat template's text (`tokenizer.chat_template`), empty when absent; or the one of that name
/// (`tokenizer.chat_template.NAME`).
std::string_view chat_template(const gguf::File& file, std::string_view name = {});

}  // namespace kz
