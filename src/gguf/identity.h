// Telling one model file from another without reading all of it.
#pragma once

#include <string>

#include "gguf/file.h"

namespace kz::gguf {

/// What a derived file (the packed cache) is bound to.
struct Identity {
  std::string content;  ///< digest of the sizes, the directories and blocks sampled all over the files
  std::string stamp;    ///< what the system says of the files: it changes whenever they are written to
};

/// Reads the directories and some hundred kilobytes. Both are empty for bytes in memory.
Identity identify(const File& file);

}  // namespace kz::gguf
