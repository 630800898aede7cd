// The files of the built-in model: two are kept, the others are made from the F16 file by our own quantiser.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "support/engines.h"

namespace kz::testing {

/// "f16", "q4_0", "q8_0" or "q4_k_m" -> path. Made files live until the program ends.
inline std::string tiny_variant(const std::string& variant) {
  if (variant == "f16") return tiny_f16();
  if (variant == "q4_0") return tiny_q4_0();
  struct Folder {
    std::filesystem::path path = std::filesystem::temp_directory_path() / ("kazeia-tiny-" + std::to_string(getpid()));
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  const std::string target = (folder.path / (variant + ".gguf")).string();
  if (!std::filesystem::exists(target)) {
    QuantizeOptions options;
    options.type = variant;
    quantize(tiny_f16(), target, options);
  }
  return target;
}

}  // namespace kz::testing
