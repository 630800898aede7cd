#include "engine/file_type.h"

#include <array>
#include <map>
#include <utility>

namespace kz {

std::string_view file_type_name(int64_t file_type) {
  static constexpr std::array<std::pair<int64_t, std::string_view>, 20> kNames = {{
      {0, "F32"},     {1, "F16"},     {2, "Q4_0"},    {3, "Q4_1"},    {7, "Q8_0"},    {8, "Q5_0"},    {9, "Q5_1"},
      {10, "Q2_K"},   {11, "Q3_K_S"}, {12, "Q3_K_M"}, {13, "Q3_K_L"}, {14, "Q4_K_S"}, {15, "Q4_K_M"}, {16, "Q5_K_S"},
      {17, "Q5_K_M"}, {18, "Q6_K"},   {25, "IQ4_NL"}, {30, "IQ4_XS"}, {32, "BF16"},   {38, "MXFP4"},
  }};
  for (const auto& [number, name] : kNames) {
    if (number == file_type) return name;
  }
  return {};
}

std::string file_type_of(const gguf::File& file) {
  if (const gguf::KeyValue* key = file.find("general.file_type"); key != nullptr && key->count == 1) {
    const bool is_number = key->type != gguf::ValueType::string && key->type != gguf::ValueType::array &&
                           key->type != gguf::ValueType::f32 && key->type != gguf::ValueType::f64;
    if (is_number) {
      const std::string_view name = file_type_name(file.integer(key->key, INT64_MIN, INT64_MAX));
      if (!name.empty()) return std::string(name);
    }
  }
  std::map<DType, uint64_t> bytes_of;
  for (const gguf::TensorInfo& tensor : file.tensors()) bytes_of[tensor.dtype] += tensor.size_bytes;
  std::pair<DType, uint64_t> most{DType::f32, 0};
  for (const auto& entry : bytes_of) {
    if (entry.second > most.second) most = entry;
  }
  return "mostly " + std::string(dtype_name(most.first));
}

}  // namespace kz
