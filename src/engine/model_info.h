// What a file says about itself, as a user reads it.
#pragma once

#include <kazeia/engine.h>

#include <memory>

#include "gguf/file.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace kz {

/// Null when the file holds no vocabulary. Throws Error(bad_file) when it holds more tokens than the model has rows.
/// `notes` gets a line for everything in the vocabulary that was left out.
std::unique_ptr<Tokenizer> open_tokenizer(const gguf::File& file, const Model& model, std::vector<std::string>& notes);

/// Everything of ModelInfo but the notes on the vocabulary; tokenizer may be null (then only what the keys say is
/// filled in).
ModelInfo describe(const gguf::File& file, const Model& model, const Tokenizer* tokenizer);

}  // namespace kz
