#include "core/dtype.h"

#include <array>
#include <limits>
#include <string>

#include "core/error.h"

namespace kz {
namespace {

// In the order of the ids; the ids that GGUF has withdrawn (4, 5, 31-33, 36-38) have no line.
constexpr std::array kTypes{
    DTypeInfo{DType::f32, "F32", 1, 4, true},
    DTypeInfo{DType::f16, "F16", 1, 2, true},
    DTypeInfo{DType::q4_0, "Q4_0", 32, 18, true},
    DTypeInfo{DType::q4_1, "Q4_1", 32, 20, true},
    DTypeInfo{DType::q5_0, "Q5_0", 32, 22, true},
    DTypeInfo{DType::q5_1, "Q5_1", 32, 24, true},
    DTypeInfo{DType::q8_0, "Q8_0", 32, 34, true},
    DTypeInfo{DType::q8_1, "Q8_1", 32, 36, false},
    DTypeInfo{DType::q2_k, "Q2_K", 256, 84, true},
    DTypeInfo{DType::q3_k, "Q3_K", 256, 110, true},
    DTypeInfo{DType::q4_k, "Q4_K", 256, 144, true},
    DTypeInfo{DType::q5_k, "Q5_K", 256, 176, true},
    DTypeInfo{DType::q6_k, "Q6_K", 256, 210, true},
    DTypeInfo{DType::q8_k, "Q8_K", 256, 292, false},
    DTypeInfo{DType::iq2_xxs, "IQ2_XXS", 256, 66, false},
    DTypeInfo{DType::iq2_xs, "IQ2_XS", 256, 74, false},
    DTypeInfo{DType::iq3_xxs, "IQ3_XXS", 256, 98, false},
    DTypeInfo{DType::iq1_s, "IQ1_S", 256, 50, false},
    DTypeInfo{DType::iq4_nl, "IQ4_NL", 32, 18, true},
    DTypeInfo{DType::iq3_s, "IQ3_S", 256, 110, false},
    DTypeInfo{DType::iq2_s, "IQ2_S", 256, 82, false},
    DTypeInfo{DType::iq4_xs, "IQ4_XS", 256, 136, true},
    DTypeInfo{DType::i8, "I8", 1, 1, false},
    DTypeInfo{DType::i16, "I16", 1, 2, false},
    DTypeInfo{DType::i32, "I32", 1, 4, false},
    DTypeInfo{DType::i64, "I64", 1, 8, false},
    DTypeInfo{DType::f64, "F64", 1, 8, false},
    DTypeInfo{DType::iq1_m, "IQ1_M", 256, 56, false},
    DTypeInfo{DType::bf16, "BF16", 1, 2, true},
    DTypeInfo{DType::tq1_0, "TQ1_0", 256, 54, false},
    DTypeInfo{DType::tq2_0, "TQ2_0", 256, 66, false},
    DTypeInfo{DType::mxfp4, "MXFP4", 32, 17, true},
    DTypeInfo{DType::nvfp4, "NVFP4", 64, 36, false},
    DTypeInfo{DType::q1_0, "Q1_0", 128, 18, false},
    DTypeInfo{DType::q2_0, "Q2_0", 64, 18, false},
};

// What dtype_info() answers for a value outside the enumeration: no block, so that row_bytes() refuses it.
constexpr DTypeInfo kUnknown{DType{-1}, "unknown", 0, 0, false};

constexpr int32_t kIds = 43;

constexpr std::array<const DTypeInfo*, kIds> index_by_id() {
  std::array<const DTypeInfo*, kIds> index{};
  for (const DTypeInfo& info : kTypes) index[static_cast<size_t>(info.dtype)] = &info;
  return index;
}
constexpr std::array<const DTypeInfo*, kIds> kById = index_by_id();

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (upper(a[i]) != upper(b[i])) return false;
  }
  return true;
}

}  // namespace

const DTypeInfo* find_dtype(int32_t gguf_id) noexcept {
  return gguf_id >= 0 && gguf_id < kIds ? kById[static_cast<size_t>(gguf_id)] : nullptr;
}

const DTypeInfo& dtype_info(DType dtype) noexcept {
  const DTypeInfo* info = find_dtype(static_cast<int32_t>(dtype));
  return info ? *info : kUnknown;
}

const DTypeInfo* find_dtype(std::string_view name) noexcept {
  for (const DTypeInfo& info : kTypes) {
    if (same_name(name, info.name)) return &info;
  }
  return nullptr;
}

int64_t row_bytes(DType dtype, int64_t n) {
  const DTypeInfo& info = dtype_info(dtype);
  if (info.block_elements == 0) {
    throw Error(ErrorCode::unsupported, "unknown element type " + std::to_string(static_cast<int32_t>(dtype)));
  }
  if (n < 0 || n % info.block_elements != 0) {
    throw Error(ErrorCode::bad_argument, "row of " + std::to_string(n) + " elements: expected a multiple of " +
                                             std::to_string(info.block_elements) + " for " + std::string(info.name));
  }
  const int64_t blocks = n / info.block_elements;
  if (blocks > std::numeric_limits<int64_t>::max() / info.block_bytes) {
    throw Error(ErrorCode::bad_argument, "row of " + std::to_string(n) + " elements of " + std::string(info.name) +
                                             ": its bytes do not fit 64 bits");
  }
  return blocks * info.block_bytes;
}

}  // namespace kz
