// Parses and checks everything in front of the tensor data of one GGUF file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gguf/file.h"

namespace kz::gguf {

/// Position in a vector of keys or tensors by name.
using NameIndex = std::unordered_map<std::string_view, uint32_t>;

/// The content of one file. Names and values point into the parsed bytes.
struct Directory {
  int version = 0;
  uint64_t alignment = 32;
  uint64_t data_start = 0;  ///< of the tensor data, from the start of the file
  uint64_t data_end = 0;    ///< end of the last tensor (data_start when there is none)
  std::vector<KeyValue> keys;
  std::vector<TensorInfo> tensors;
  NameIndex key_index;
  NameIndex tensor_index;
};

/// Parses the whole directory and checks what docs/gguf.md lists; reads no byte of the tensor data.
/// `name` stands in messages. Throws Error(bad_file | unsupported).
Directory parse(std::span<const std::byte> bytes, const std::string& name);

/// Bytes of a scalar of this type; 0 for a text and an array.
uint64_t scalar_bytes(ValueType type) noexcept;

}  // namespace kz::gguf
