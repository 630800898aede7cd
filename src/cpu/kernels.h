// What one instruction set gives the CPU backend: plain functions in one constant table.
//
// Kernel files are compiled with flags that the machine may not have, so this header holds nothing but fixed-width
// types and plain structs. Kernels own no memory, no threads and no state. All of them belong to the class f32
// (docs/decisions/arithmetic.md): every output has one fixed order of float operations, whatever the table, the tile
// shape, the number of rows and the neighbours.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kz {

/// Partial sums of one output: element k of a sum goes into lane k mod kLanes; a fixed tree adds the lanes.
inline constexpr int64_t kLanes = 16;
/// Longest part of a row that product() walks before it turns to the next weight rows (keeps x in the first cache).
inline constexpr int64_t kProductColumns = 1024;
/// Rows of x that one tile of product() holds at most.
inline constexpr int64_t kMostTileRows = 4;

/// out[r][w] = sum over k of weights[w][k] * x[r][k] (+ bias[w]). Strides count floats.
struct ProductArgs {
  const float* weights = nullptr;
  int64_t weight_stride = 0;
  int64_t n_weights = 0;
  const float* x = nullptr;
  int64_t x_stride = 0;
  int64_t n_rows = 0;
  int64_t k = 0;
  const float* bias = nullptr;  ///< n_weights values, or null
  float* out = nullptr;
  int64_t out_stride = 0;
  float* lanes = nullptr;  ///< work: product_lane_floats(n_weights, k) floats
};

/// Floats of work memory that product() needs: the lanes of a tile, kept between the parts of a long row.
constexpr int64_t product_lane_floats(int64_t n_weights, int64_t k) {
  return k > kProductColumns ? n_weights * kMostTileRows * kLanes : 0;
}

/// product() on weights as they lie in a file: F32, F16 or BF16, at any address. For few rows of x (at most
/// kMostTileRows): weights are converted in registers, in one sweep over memory.
struct StoredProductArgs {
  int32_t gguf_type = 0;
  const std::byte* weights = nullptr;
  int64_t weight_stride_bytes = 0;
  int64_t n_weights = 0;
  const float* x = nullptr;
  int64_t x_stride = 0;
  int64_t n_rows = 0;
  int64_t k = 0;
  const float* bias = nullptr;  ///< n_weights values, or null
  float* out = nullptr;
  int64_t out_stride = 0;
};

/// out[r][j] += sum over u < n, ascending, of weights[r][u] * values[u][j]; continues from what out holds.
struct WeightedSumArgs {
  const float* weights = nullptr;
  int64_t weight_stride = 0;
  const float* values = nullptr;
  int64_t value_stride = 0;
  int64_t n = 0;
  int64_t dim = 0;  ///< values per row
  float* out = nullptr;
  int64_t out_stride = 0;
  int64_t n_rows = 0;
};

/// out[q][u] = queries[q] . (key u), for n rows of the KV cache as they are stored. dim: a multiple of 32.
struct StoredScoreArgs {
  const std::byte* keys = nullptr;
  int64_t row_bytes = 0;
  int64_t n = 0;
  int64_t dim = 0;
  const float* queries = nullptr;  ///< dim floats each, one after the other
  int64_t n_queries = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
};
using StoredScoreKernel = void (*)(const StoredScoreArgs& args);

/// out[q][j] += sum over u < n, ascending, of weights[q][u] * (value u)[j]. dim: a multiple of 32.
struct StoredMixArgs {
  const std::byte* values = nullptr;
  int64_t row_bytes = 0;
  int64_t n = 0;
  int64_t dim = 0;
  const float* weights = nullptr;
  int64_t weight_stride = 0;
  int64_t n_queries = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
};
using StoredMixKernel = void (*)(const StoredMixArgs& args);

/// Softmax of some scores before their division: weights e^(score - largest), their sum and the largest score.
struct SoftmaxPart {
  float largest;
  float sum;
};

/// Some rows of one delta state and the tokens that it walks. Strides count floats from token to token.
struct DeltaArgs {
  float* state = nullptr;  ///< n_values rows of `size` floats, one after the other
  int64_t n_values = 0;
  int64_t size = 0;
  int64_t n_tokens = 0;
  const float* q = nullptr;  ///< normalised
  const float* k = nullptr;  ///< normalised
  int64_t qk_stride = 0;
  const float* v = nullptr;  ///< first of the n_values values of the first token
  int64_t v_stride = 0;
  const float* key_query = nullptr;  ///< k . q of each token
  int64_t key_query_stride = 0;
  const float* decay = nullptr;     ///< e^g of each token
  const float* strength = nullptr;  ///< sigmoid(beta) of each token
  int64_t gate_stride = 0;
  float out_scale = 0;  ///< 1 / sqrt(size)
  float* out = nullptr;
  int64_t out_stride = 0;
};

/// Some channels of one row of a causal convolution, oldest tap first. out may be the newest input.
struct ConvArgs {
  const float* const* inputs = nullptr;  ///< n_taps rows of n inputs
  const float* weights = nullptr;        ///< n_taps rows of n weights
  int64_t n_taps = 0;
  int64_t n = 0;
  float* out = nullptr;
};

/// Writes n float32 values of blocks; n is a multiple of the block.
using DequantiseKernel = void (*)(const std::byte* blocks, float* out, int64_t n);

struct Kernels {
  const char* name;

  /// The kernel for a GGUF type id, or null: then core's dequantise_row() does it. Same bits either way.
  DequantiseKernel (*dequantise)(int32_t gguf_type);
  void (*product)(const ProductArgs& args);
  /// False, and nothing done, for a type that it does not know.
  bool (*stored_product)(const StoredProductArgs& args);
  void (*weighted_sum)(const WeightedSumArgs& args);

  /// For GGUF types that the KV cache may have; bits as product() and weighted_sum() of dequantised rows.
  StoredScoreKernel (*stored_scores)(int32_t gguf_type);
  StoredMixKernel (*stored_mix)(int32_t gguf_type);

  /// Turns n scores into e^(scale * score - largest), in place; n >= 1.
  SoftmaxPart (*softmax)(float* scores, int64_t n, float scale);
  /// Folds a later part into an earlier one: both outputs are weighted sums before their division.
  SoftmaxPart (*merge)(float* out, SoftmaxPart part, const float* later_out, SoftmaxPart later, int64_t n);
  /// out = x / divisor.
  void (*divide)(const float* x, float divisor, float* out, int64_t n);

  void (*delta)(const DeltaArgs& args);
  void (*conv_silu)(const ConvArgs& args);

  /// out[t][c] = w[c * stride + t] for n channels.
  void (*transpose_taps)(const float* w, int64_t stride, int64_t n_taps, int64_t n, float* out);

  /// Sum of x * y in the order of product().
  float (*dot)(const float* x, const float* y, int64_t n);
  /// out = e^x; out may be x.
  void (*exponential)(const float* x, float* out, int64_t n);
  /// out = 1 / (1 + e^-x); out may be x.
  void (*sigmoid)(const float* x, float* out, int64_t n);
  /// Sum of squares in double.
  double (*sum_of_squares)(const float* x, int64_t n);
  /// out = x * scale * w (w null: out = x * scale); out may be x.
  void (*scale)(const float* x, float scale, const float* w, float* out, int64_t n);
  /// x = x * scale * w * SiLU(z).
  void (*scale_silu_gate)(float* x, float scale, const float* w, const float* z, int64_t n);
  /// out = SiLU(gate) * up; out may be gate or up.
  void (*swiglu)(const float* gate, const float* up, float* out, int64_t n);
  /// x = x * sigmoid(gate).
  void (*sigmoid_gate)(float* x, const float* gate, int64_t n);
  /// x += y.
  void (*add)(float* x, const float* y, int64_t n);
  /// (a, b) <- (a cos - b sin, a sin + b cos) for n pairs.
  void (*rotate)(float* a, float* b, const float* cos, const float* sin, int64_t n);
};

}  // namespace kz
