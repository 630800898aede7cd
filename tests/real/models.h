// Where scripts/fetch_model leaves the public models.
#pragma once

#include <cstdlib>
#include <string>

namespace kz::testing {

constexpr const char* kSmolLm2File = "SmolLM2-135M-Instruct.Q4_1.gguf";
constexpr const char* kQwen25File = "qwen2.5-0.5b.gguf";

/// Path of a model's file, which need not be there.
inline std::string cached(const std::string& file) {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return std::string(cache) + "/kazeia/" + file;
  }
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "") + "/.cache/kazeia/" + file;
}

}  // namespace kz::testing
