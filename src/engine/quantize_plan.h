// Which type every tensor of a quantised file gets (docs/quantize.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "gguf/file.h"

namespace kz {

/// What a user asks for by name.
struct QuantizeRecipe {
  std::string_view name;
  DType body;         ///< type of most matrices
  bool is_mixed;      ///< K-quant "M": attn_v, attn_qkv and ffn_down get more bits in some layers
  int64_t file_type;  ///< general.file_type
};

/// Any case. Throws Error(bad_argument) that names the known ones.
const QuantizeRecipe& find_recipe(std::string_view name);

struct TensorPlan {
  const gguf::TensorInfo* source = nullptr;
  DType target = DType::f32;
};

struct QuantizePlan {
  std::vector<TensorPlan> tensors;     ///< in the order of the target: by block number, then by name
  std::vector<std::string> fallbacks;  ///< tensors that could not get the type of the recipe, and why
};

QuantizePlan plan_quantization(const gguf::File& file, const QuantizeRecipe& recipe, bool pure);

}  // namespace kz
