// Scores and mixtures straight from rows of the KV cache: converted in registers, used for all queries of a tile. For a
// few queries; the bits are those of dequantise(), product() and weighted_sum(). Part of the kernel template (see
// vector.h).
//
// A Shape may bring
//
//   static Lanes<kWidth>::F half_everywhere(const std::byte* p)   one fp16 value in every lane
//   static Lanes<kWidth>::F codes(const std::byte* p)             sixteen signed bytes as floats
#pragma once

#include "cpu/template/dequantise.h"
#include "cpu/template/stored_product.h"

namespace kz {
namespace {

/// Columns that a reader takes at a time, as two vectors of lanes; dims are multiples of it.
constexpr int64_t kStoredColumns = 32;

/// F32 and F16 rows.
template <class Shape, class Stored>
struct FloatReader {
  using F = typename Lanes<Shape::kWidth>::F;
  using Scale = int;
  static constexpr int64_t kBytes = Stored::kBytes * kStoredColumns;
  KZ_INLINE static Scale scale(const std::byte*) { return 0; }
  KZ_INLINE static F load(const std::byte* p, int half, Scale) { return Stored::load(p + half * kBytes / 2); }
};

/// Q8_0 rows. A code times its scale is exact in float.
template <class Shape>
struct Q8Reader {
  using F = typename Lanes<Shape::kWidth>::F;
  using Scale = F;
  static constexpr int64_t kBytes = 34;
  KZ_INLINE static Scale scale(const std::byte* p) {
    if constexpr (requires { Shape::half_everywhere(p); })
      return Shape::half_everywhere(p);
    else
      return Lanes<Shape::kWidth>::splat(load_half(p));
  }
  KZ_INLINE static F load(const std::byte* p, int half, const Scale& scale) {
    const std::byte* codes = p + 2 + kLanes * half;
    if constexpr (requires { Shape::codes(codes); }) {
      return Shape::codes(codes) * scale;
    } else {
      using C = typename LanesOf<int8_t, kLanes, Shape::kWidth>::Type;
      return Between<F, C>::value(Ops<C>::load(codes)) * scale;
    }
  }
};

template <class Shape>
void dequantise_f16_rows(const std::byte* in, float* out, int64_t n) {
  int64_t at = 0;
  for (; at + kLanes <= n; at += kLanes) Lanes<Shape::kWidth>::store(out + at, StoredF16<Shape>::load(in + 2 * at));
  for (; at < n; ++at) out[at] = half_to_f32(load_u16(in + 2 * at));
}

template <class Shape>
void dequantise_q8_rows(const std::byte* block, float* out, int64_t n) {
  using Reader = Q8Reader<Shape>;
  for (int64_t at = 0; at < n; at += kStoredColumns, block += Reader::kBytes) {
    const auto d = Reader::scale(block);
    Lanes<Shape::kWidth>::store(out + at, Reader::load(block, 0, d));
    Lanes<Shape::kWidth>::store(out + at + kLanes, Reader::load(block, 1, d));
  }
}

/// dequantise_kernel(), with the shape's instructions for the types of the KV cache.
template <class Shape>
DequantiseKernel dequantise_kv(int32_t gguf_type) {
  if (gguf_type == 1) return dequantise_f16_rows<Shape>;
  return gguf_type == 8 ? dequantise_q8_rows<Shape> : dequantise_kernel<Shape::kWidth>(gguf_type);
}

KZ_INLINE void fetch_ahead(const std::byte* p, int64_t n_bytes) {
  for (int64_t at = 0; at < n_bytes; at += 64) __builtin_prefetch(p + at);
}

/// kQ queries against kU neighbouring keys.
template <class Shape, class Reader, int kQ, int kU>
KZ_INLINE void score_tile(const StoredScoreArgs& a, int64_t q, int64_t u) {
  using L = Lanes<Shape::kWidth>;
  using F = typename L::F;
  constexpr int64_t kRowsAhead = 8;
  F sum[kQ * kU];
  for (F& s : sum) s = F{};
  const std::byte* key = a.keys + u * a.row_bytes;
  const float* query = a.queries + q * a.dim;
  for (int64_t at = 0; at < a.dim; at += kStoredColumns, key += Reader::kBytes) {
    typename Reader::Scale scale[kU];
    for (int k = 0; k < kU; ++k) {
      fetch_ahead(key + (k + kRowsAhead) * a.row_bytes, Reader::kBytes);
      scale[k] = Reader::scale(key + k * a.row_bytes);
    }
    for (int half = 0; half < 2; ++half) {
      F x[kQ];
      for (int r = 0; r < kQ; ++r) x[r] = L::load(query + r * a.dim + at + kLanes * half);
      for (int k = 0; k < kU; ++k) {
        const F value = Reader::load(key + k * a.row_bytes, half, scale[k]);
        for (int r = 0; r < kQ; ++r) sum[r * kU + k] = sum[r * kU + k] + value * x[r];
      }
    }
  }
  float sums[kQ * kU];
  tree_sums(sum, sums);
  for (int r = 0; r < kQ; ++r) {
    __builtin_memcpy(a.out + (q + r) * a.out_stride + u, sums + r * kU, sizeof(float) * kU);
  }
}

template <class Shape, class Reader, int kQ>
void score_queries(const StoredScoreArgs& a, int64_t q) {
  constexpr int kU = Shape::kStoredKeys;
  int64_t u = 0;
  for (; u + kU <= a.n; u += kU) score_tile<Shape, Reader, kQ, kU>(a, q, u);
  for (; u < a.n; ++u) score_tile<Shape, Reader, kQ, 1>(a, q, u);
}

template <class Shape, class Reader>
void score_all(const StoredScoreArgs& a) {
  constexpr int kQ = Shape::kStoredQueries;
  int64_t q = 0;
  for (; q + kQ <= a.n_queries; q += kQ) score_queries<Shape, Reader, kQ>(a, q);
  if constexpr (kQ > 2) {
    for (; q + 2 <= a.n_queries; q += 2) score_queries<Shape, Reader, 2>(a, q);
  }
  for (; q < a.n_queries; ++q) score_queries<Shape, Reader, 1>(a, q);
}

/// kQ outputs, kB blocks of columns wide, in registers over values [begin, end).
template <class Shape, class Reader, int kQ, int kB>
KZ_INLINE void mix_tile(const StoredMixArgs& a, int64_t q, int64_t block, int64_t begin, int64_t end) {
  using L = Lanes<Shape::kWidth>;
  using F = typename L::F;
  F sum[kQ][2 * kB];
  float* out = a.out + q * a.out_stride + block * kStoredColumns;
  const float* weights = a.weights + q * a.weight_stride;
  const std::byte* value = a.values + begin * a.row_bytes + block * Reader::kBytes;
  const int64_t ahead = (end - begin) * a.row_bytes;
  for (int r = 0; r < kQ; ++r) {
    for (int c = 0; c < 2 * kB; ++c) sum[r][c] = L::load(out + r * a.out_stride + c * kLanes);
  }
  for (int64_t u = begin; u < end; ++u, value += a.row_bytes) {
    fetch_ahead(value + ahead, kB * Reader::kBytes);
    F weight[kQ];
    for (int r = 0; r < kQ; ++r) weight[r] = L::splat(weights[r * a.weight_stride + u]);
    for (int b = 0; b < kB; ++b) {
      const auto scale = Reader::scale(value + b * Reader::kBytes);
      for (int half = 0; half < 2; ++half) {
        const F x = Reader::load(value + b * Reader::kBytes, half, scale);
        for (int r = 0; r < kQ; ++r) sum[r][2 * b + half] = sum[r][2 * b + half] + weight[r] * x;
      }
    }
  }
  for (int r = 0; r < kQ; ++r) {
    for (int c = 0; c < 2 * kB; ++c) L::store(out + r * a.out_stride + c * kLanes, sum[r][c]);
  }
}

/// A few values at a time, so that they wait in the first cache while all columns and queries use them.
template <class Shape, class Reader, int kQ>
KZ_INLINE void mix_queries(const StoredMixArgs& a, int64_t q, int64_t begin, int64_t end) {
  constexpr int kB = Shape::kStoredBlocks;
  const int64_t n_blocks = a.dim / kStoredColumns;
  int64_t block = 0;
  for (; block + kB <= n_blocks; block += kB) mix_tile<Shape, Reader, kQ, kB>(a, q, block, begin, end);
  for (; block < n_blocks; ++block) mix_tile<Shape, Reader, kQ, 1>(a, q, block, begin, end);
}

template <class Shape, class Reader>
void mix_all(const StoredMixArgs& a) {
  constexpr int kQ = Shape::kStoredQueries;
  constexpr int64_t kValues = 16;
  for (int64_t begin = 0; begin < a.n; begin += kValues) {
    const int64_t end = a.n - begin > kValues ? begin + kValues : a.n;
    int64_t q = 0;
    for (; q + kQ <= a.n_queries; q += kQ) mix_queries<Shape, Reader, kQ>(a, q, begin, end);
    if constexpr (kQ > 2) {
      for (; q + 2 <= a.n_queries; q += 2) mix_queries<Shape, Reader, 2>(a, q, begin, end);
    }
    for (; q < a.n_queries; ++q) mix_queries<Shape, Reader, 1>(a, q, begin, end);
  }
}

/// By GGUF type id: F32, F16 and Q8_0, the types of the KV cache; null for others.
template <class Shape>
StoredScoreKernel stored_scores(int32_t gguf_type) {
  if (gguf_type == 0) return score_all<Shape, FloatReader<Shape, StoredF32<Shape>>>;
  if (gguf_type == 1) return score_all<Shape, FloatReader<Shape, StoredF16<Shape>>>;
  return gguf_type == 8 ? score_all<Shape, Q8Reader<Shape>> : nullptr;
}

template <class Shape>
StoredMixKernel stored_mix(int32_t gguf_type) {
  if (gguf_type == 0) return mix_all<Shape, FloatReader<Shape, StoredF32<Shape>>>;
  if (gguf_type == 1) return mix_all<Shape, FloatReader<Shape, StoredF16<Shape>>>;
  return gguf_type == 8 ? mix_all<Shape, Q8Reader<Shape>> : nullptr;
}

}  // namespace
}  // namespace kz
