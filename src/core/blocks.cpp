#include "core/blocks.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>

#include "core/blocks/dequantise.h"
#include "core/blocks/layout.h"
#include "core/blocks/quantise.h"
#include "core/error.h"
#include "core/half.h"

namespace kz {
namespace {

using RowReader = void (*)(const uint8_t* in, float* out, int64_t n);
using BlockWriter = void (*)(const float* x, uint8_t* out);

RowReader reader_of(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return blocks::dequantise_f16;
    case DType::bf16:
      return blocks::dequantise_bf16;
    case DType::q4_0:
      return blocks::dequantise_q4_0;
    case DType::q4_1:
      return blocks::dequantise_q4_1;
    case DType::q5_0:
      return blocks::dequantise_q5_0;
    case DType::q5_1:
      return blocks::dequantise_q5_1;
    case DType::q8_0:
      return blocks::dequantise_q8_0;
    case DType::q2_k:
      return blocks::dequantise_q2_k;
    case DType::q3_k:
      return blocks::dequantise_q3_k;
    case DType::q4_k:
      return blocks::dequantise_q4_k;
    case DType::q5_k:
      return blocks::dequantise_q5_k;
    case DType::q6_k:
      return blocks::dequantise_q6_k;
    case DType::iq4_nl:
      return blocks::dequantise_iq4_nl;
    case DType::iq4_xs:
      return blocks::dequantise_iq4_xs;
    case DType::mxfp4:
      return blocks::dequantise_mxfp4;
    default:
      return nullptr;
  }
}

/// How a block type is written, and where its fp16 scales stand (to find those that overflowed).
struct Writer {
  BlockWriter block = nullptr;
  int first_scale = 0;
  int second_scale = 0;
};

Writer writer_of(DType dtype) {
  switch (dtype) {
    case DType::q4_0:
      return {blocks::quantise_q4_0, 0, 0};
    case DType::q4_1:
      return {blocks::quantise_q4_1, 0, 2};
    case DType::q5_0:
      return {blocks::quantise_q5_0, 0, 0};
    case DType::q5_1:
      return {blocks::quantise_q5_1, 0, 2};
    case DType::q8_0:
      return {blocks::quantise_q8_0, 0, 0};
    case DType::iq4_nl:
      return {blocks::quantise_iq4_nl, 0, 0};
    case DType::q4_k:
      return {blocks::quantise_q4_k, 0, 2};
    case DType::q5_k:
      return {blocks::quantise_q5_k, 0, 2};
    case DType::q6_k:
      return {blocks::quantise_q6_k, 208, 208};
    default:
      return {};
  }
}

bool is_scalar(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

/// The first magnitude that a type cannot hold: half a step above the largest finite value, where rounding gives
/// infinity. Block types get a bound far above what they can hold; their scales are checked after writing.
float overflow_from(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return std::numeric_limits<float>::infinity();
    case DType::bf16:
      return 0x1.ffp127f;
    case DType::f16:
      return 65520.0f;
    default:
      return blocks::kLargest;
  }
}

[[noreturn]] void refuse_type(DType dtype, const char* verb) {
  std::string name(dtype_name(dtype));
  if (find_dtype(static_cast<int32_t>(dtype)) == nullptr) name = std::to_string(static_cast<int32_t>(dtype));
  throw Error(ErrorCode::unsupported, "unsupported block type " + name + ": this engine cannot " + verb + " it");
}

[[noreturn]] void refuse_value(DType dtype, float value, int64_t column) {
  char text[48];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  const std::string where = " at column " + std::to_string(column) + ": " + text;
  if (!std::isfinite(value)) throw Error(ErrorCode::bad_argument, "non-finite value" + where);
  throw Error(ErrorCode::bad_argument, "value" + where + " is too large for " + std::string(dtype_name(dtype)));
}

void check_values(DType dtype, const float* values, int64_t n) {
  const float limit = overflow_from(dtype);
  // One pass without branches for the usual case; NaN fails every comparison.
  bool good = true;
  for (int64_t i = 0; i < n; ++i) good &= std::fabs(values[i]) < limit;
  if (good) return;
  for (int64_t i = 0; i < n; ++i) {
    if (!(std::fabs(values[i]) < limit)) refuse_value(dtype, values[i], i);
  }
}

/// Throws for the largest value of the block that made a scale infinite.
void check_scales(DType dtype, const Writer& writer, const float* values, int64_t first, const uint8_t* block) {
  const auto infinite = [block](int at) { return (blocks::load_u16(block + at) & 0x7fffu) >= 0x7c00u; };
  if (!infinite(writer.first_scale) && !infinite(writer.second_scale)) return;
  int64_t worst = first;
  for (int64_t i = first; i < first + dtype_info(dtype).block_elements; ++i) {
    if (std::fabs(values[i]) > std::fabs(values[worst])) worst = i;
  }
  refuse_value(dtype, values[worst], worst);
}

void write_scalars(DType dtype, const float* values, uint8_t* out, int64_t n) {
  if (dtype == DType::f32) {
    if (n > 0) std::memcpy(out, values, static_cast<size_t>(n) * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    blocks::store_u16(out + 2 * i, dtype == DType::f16 ? f32_to_f16(values[i]) : f32_to_bf16(values[i]));
  }
}

}  // namespace

void dequantise_row(DType dtype, const std::byte* blocks, float* out, int64_t n) {
  if (dtype == DType::f32) {
    KZ_CHECK(n >= 0);
    if (n > 0) std::memcpy(out, blocks, static_cast<size_t>(n) * sizeof(float));
    return;
  }
  const RowReader read = reader_of(dtype);
  if (read == nullptr) refuse_type(dtype, "read");
  KZ_CHECK(n >= 0 && n % dtype_info(dtype).block_elements == 0);
  read(reinterpret_cast<const uint8_t*>(blocks), out, n);
}

bool can_quantise(DType dtype) noexcept { return is_scalar(dtype) || writer_of(dtype).block != nullptr; }

void quantise_row(DType dtype, const float* values, std::byte* blocks, int64_t n) {
  if (!can_quantise(dtype)) refuse_type(dtype, "write");
  const DTypeInfo& info = dtype_info(dtype);
  KZ_CHECK(n >= 0 && n % info.block_elements == 0);
  check_values(dtype, values, n);
  uint8_t* out = reinterpret_cast<uint8_t*>(blocks);
  if (is_scalar(dtype)) {
    write_scalars(dtype, values, out, n);
    return;
  }
  const Writer writer = writer_of(dtype);
  for (int64_t first = 0; first < n; first += info.block_elements, out += info.block_bytes) {
    writer.block(values + first, out);
    check_scales(dtype, writer, values, first, out);
  }
}

}  // namespace kz
