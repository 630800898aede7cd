// What a file says about itself, as a user reads it.
#pragma once

#include <kazeia/engine.h>

#include <memory>

#include "gguf/file.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace kz {

/// Null when the file holds no vocabulary. Throws Error(bad_file) when it holds more tokens than the model has rows.
std::unique_ptr<Tokenizer> open_tokenizer(const gguf::File& file, const Model& model);

/// Everything of ModelInfo; tokenizer may be null (then only what the keys say is filled in).
ModelInfo describe(const gguf::File& file, const Model& model, const Tokenizer* tokenizer);

}  // namespace kz
