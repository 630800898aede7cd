// One row (a head's key or value at a position) between float32 and the type of the KV cache.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace kz {

/// Writes row_bytes(type, n) bytes at `row`. Type F32, F16 (nearest even) or Q8_0 (the GGUF block layout and rounding;
/// n a multiple of 32). Throws Error(bad_argument) for Q8_0 when a value is not finite.
void store_kv_row(DType type, const float* values, std::byte* row, int64_t n);

/// Reads it back, exactly as the type defines it.
void load_kv_row(DType type, const std::byte* row, float* values, int64_t n);

}  // namespace kz
