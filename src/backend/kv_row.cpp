#include "backend/kv_row.h"

#include <cstring>

#include "core/blocks.h"
#include "core/error.h"
#include "core/half.h"

namespace kz {

void store_kv_row(DType type, const float* values, std::byte* row, int64_t n) {
  switch (type) {
    case DType::f32:
      std::memcpy(row, values, static_cast<size_t>(n) * sizeof(float));
      return;
    case DType::f16:
      for (int64_t i = 0; i < n; ++i) {
        const uint16_t half = f32_to_f16(values[i]);
        std::memcpy(row + 2 * i, &half, 2);
      }
      return;
    case DType::q8_0:
      quantise_row(type, values, row, n);
      return;
    default:
      KZ_CHECK(!"a KV type that KvPool refuses");
  }
}

void load_kv_row(DType type, const std::byte* row, float* values, int64_t n) {
  switch (type) {
    case DType::f32:
      std::memcpy(values, row, static_cast<size_t>(n) * sizeof(float));
      return;
    case DType::f16:
      for (int64_t i = 0; i < n; ++i) {
        uint16_t half;
        std::memcpy(&half, row + 2 * i, 2);
        values[i] = f16_to_f32(half);
      }
      return;
    case DType::q8_0:
      dequantise_row(type, row, values, n);
      return;
    default:
      KZ_CHECK(!"a KV type that KvPool refuses");
  }
}

}  // namespace kz
