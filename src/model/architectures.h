// One line per architecture: its name and the function that reads its configuration.
#pragma once

#include <memory>

#include "gguf/file.h"
#include "model/model.h"

namespace kz {

std::unique_ptr<Model> make_llama(const gguf::File& file);
std::unique_ptr<Model> make_qwen2(const gguf::File& file);
std::unique_ptr<Model> make_qwen3(const gguf::File& file);
std::unique_ptr<Model> make_qwen35(const gguf::File& file);

}  // namespace kz
