// The names of general.file_type: what a quantised file calls itself. Informational; types come from the tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gguf/file.h"

namespace kz {

/// "Q4_K_M" for 15, and so on; empty for a number without a name here.
std::string_view file_type_name(int64_t file_type);

/// What the file says, or the type that most of its bytes have.
std::string file_type_of(const gguf::File& file);

}  // namespace kz
