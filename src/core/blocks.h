// The block formats of weights: bytes <-> float32. Layouts and rounding rules: docs/blocks.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace kz {

/// Writes the n float32 values of one row (or part of a row that starts at a block) of any loadable type.
/// n must be a multiple of the block. The order of float operations is part of the contract: results are the same
/// bits everywhere. Throws Error(unsupported) for types that this engine cannot read.
void dequantise_row(DType dtype, const std::byte* blocks, float* out, int64_t n);

/// True when quantise_row() can write this type.
bool can_quantise(DType dtype) noexcept;

/// Writes row_bytes(dtype, n) bytes, by the reference rules without importance matrix. Throws Error(unsupported)
/// for a type that cannot be written and Error(bad_argument) at a value that is not finite (names its column).
void quantise_row(DType dtype, const float* values, std::byte* blocks, int64_t n);

}  // namespace kz
