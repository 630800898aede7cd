#include "engine/quantize_plan.h"

#include <fmt/format.h>
#include <kazeia/error.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

namespace kz {
namespace {

constexpr std::array<QuantizeRecipe, 14> kRecipes = {{
    {"Q4_0", DType::q4_0, false, 2},
    {"Q4_1", DType::q4_1, false, 3},
    {"Q5_0", DType::q5_0, false, 8},
    {"Q5_1", DType::q5_1, false, 9},
    {"Q8_0", DType::q8_0, false, 7},
    {"Q4_K_M", DType::q4_k, true, 15},
    {"Q5_K_M", DType::q5_k, true, 17},
    {"Q4_K", DType::q4_k, false, 14},
    {"Q5_K", DType::q5_k, false, 16},
    {"Q6_K", DType::q6_k, false, 18},
    {"IQ4_NL", DType::iq4_nl, false, 25},
    {"F16", DType::f16, false, 1},
    {"BF16", DType::bf16, false, 32},
    {"F32", DType::f32, false, 0},
}};

bool same_name(std::string_view a, std::string_view b) {
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return upper(x) == upper(y); });
}

/// Number of "blk.N.", or -1.
int64_t block_of(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  if (!name.starts_with(kBlock)) return -1;
  int64_t number = -1;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kBlock.size(), end, number);
  return parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '.' ? number : -1;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool is_quantised(DType type) { return dtype_info(type).block_elements > 1; }

/// Matrices only; norms, convolution kernels and expert gates are small and sensitive.
bool can_change(const gguf::TensorInfo& tensor) {
  const bool is_float = tensor.dtype == DType::f32 || tensor.dtype == DType::f16 || tensor.dtype == DType::bf16;
  if (!is_float && !is_quantised(tensor.dtype)) return false;
  return tensor.n_dims >= 2 && tensor.name.ends_with("weight") && !contains(tensor.name, "_norm.weight") &&
         !contains(tensor.name, "ssm_conv1d") && !contains(tensor.name, "ffn_gate_inp.weight");
}

/// The layers whose attn_v, attn_qkv and ffn_down get six bits: the first and the last eighth, and every third
/// between them.
bool gets_more_bits(int64_t i, int64_t n) { return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2; }

bool is_value_matrix(std::string_view name) {
  return contains(name, "attn_v.weight") || contains(name, "attn_qkv.weight");
}

/// The next type that a row of this length can have.
DType fitting_type(DType type, int64_t row_length) {
  while (row_length % dtype_info(type).block_elements != 0) {
    switch (type) {
      case DType::q4_k:
        type = DType::q5_0;
        break;
      case DType::q5_k:
        type = DType::q5_1;
        break;
      case DType::q6_k:
        type = DType::q8_0;
        break;
      default:
        type = DType::f16;
        break;
    }
  }
  return type;
}

std::vector<const gguf::TensorInfo*> in_target_order(const gguf::File& file) {
  std::vector<const gguf::TensorInfo*> order;
  for (const gguf::TensorInfo& tensor : file.tensors()) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const gguf::TensorInfo* a, const gguf::TensorInfo* b) {
    return std::tuple(block_of(a->name), a->name) < std::tuple(block_of(b->name), b->name);
  });
  return order;
}

/// Types by the recipe alone, before row lengths are looked at. Call it tensor by tensor in target order.
class RecipeRules {
 public:
  RecipeRules(const gguf::File& file, const QuantizeRecipe& recipe, bool pure)
      : recipe_(recipe), pure_(pure), tied_(file.find_tensor("output.weight") == nullptr) {
    for (const gguf::TensorInfo& tensor : file.tensors()) {
      n_values_ += is_value_matrix(tensor.name) ? 1 : 0;
      n_blocks_ = std::max(n_blocks_, block_of(tensor.name) + 1);
    }
    // The key counts MTP blocks too, as the tensors do; a file that lacks some of them keeps the key's count.
    const std::string key = fmt::format("{}.block_count", file.text_or("general.architecture", ""));
    n_blocks_ = file.integer_or(key, n_blocks_, 0, INT32_MAX);
  }

  DType type_for(const gguf::TensorInfo& tensor) {
    const int64_t value_index = is_value_matrix(tensor.name) ? value_index_++ : -1;
    if (pure_ || !is_quantised(recipe_.body)) return recipe_.body;
    const bool is_head = tensor.name == (tied_ ? "token_embd.weight" : "output.weight");
    if (is_head) return recipe_.body == DType::q8_0 ? DType::q8_0 : DType::q6_k;
    if (!recipe_.is_mixed) return recipe_.body;
    if (value_index >= 0 && gets_more_bits(value_index, n_values_)) return DType::q6_k;
    const bool is_down = contains(tensor.name, "ffn_down.weight");
    if (is_down && gets_more_bits(block_of(tensor.name), n_blocks_)) return DType::q6_k;
    return recipe_.body;
  }

 private:
  const QuantizeRecipe& recipe_;
  bool pure_;
  bool tied_;
  int64_t n_values_ = 0;
  int64_t n_blocks_ = 0;
  int64_t value_index_ = 0;
};

}  // namespace

const QuantizeRecipe& find_recipe(std::string_view name) {
  std::string known;
  for (const QuantizeRecipe& recipe : kRecipes) {
    if (same_name(recipe.name, name)) return recipe;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", recipe.name);
  }
  throw Error(ErrorCode::bad_argument, fmt::format("type is '{}', expected one of {}", name, known));
}

QuantizePlan plan_quantization(const gguf::File& file, const QuantizeRecipe& recipe, bool pure) {
  QuantizePlan plan;
  RecipeRules rules(file, recipe, pure);
  for (const gguf::TensorInfo* tensor : in_target_order(file)) {
    DType target = tensor->dtype;
    if (can_change(*tensor)) {
      const DType wanted = rules.type_for(*tensor);
      target = fitting_type(wanted, tensor->ne[0]);
      if (target != wanted) {
        plan.fallbacks.push_back(fmt::format("{}: {} instead of {}, rows of {} are not a multiple of {}", tensor->name,
                                             dtype_name(target), dtype_name(wanted), tensor->ne[0],
                                             dtype_info(wanted).block_elements));
      }
    }
    plan.tensors.push_back({tensor, target});
  }
  return plan;
}

}  // namespace kz
