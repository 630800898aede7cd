// Element and block types, by their GGUF ids.
#pragma once

#include <cstdint>
#include <string_view>

namespace kz {

/// GGUF type ids; every id that a file may name has an entry in dtype_info(), loadable or not.
enum class DType : int32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q8_1 = 9,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  q8_k = 15,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
  nvfp4 = 40,
  q1_0 = 41,
  q2_0 = 42,
};

/// Facts about one type. Sizes follow docs/spec of GGUF; a removed id has block_elements == 0.
struct DTypeInfo {
  DType dtype;
  std::string_view name;   ///< the spelling that users know: "Q4_0", "F16"
  int32_t block_elements;  ///< weights in one block along ne[0]
  int32_t block_bytes;     ///< bytes of one block
  bool weights;            ///< this engine can read weights of this type (dequantise_row works)
};

/// Facts for a GGUF type id, or nullptr for an unknown or removed id.
const DTypeInfo* find_dtype(int32_t gguf_id) noexcept;

/// Facts for a DType of this enumeration (never fails).
const DTypeInfo& dtype_info(DType dtype) noexcept;

/// The type with this name (any case: "q4_k", "Q4_K"), or nullptr.
const DTypeInfo* find_dtype(std::string_view name) noexcept;

inline std::string_view dtype_name(DType dtype) noexcept { return dtype_info(dtype).name; }

/// Bytes of n elements along ne[0]; n must be a multiple of the block.
int64_t row_bytes(DType dtype, int64_t n);

}  // namespace kz
