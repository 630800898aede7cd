// The CPU backend's own work memory: one piece per worker, one that all share. Sized before a session runs; verbs
// only divide it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/backend.h"
#include "core/arena.h"
#include "cpu/strip_kernels.h"

namespace kz {

/// Weight rows that are turned to float at a time: enough to be used often, few enough to stay in the second cache
/// (many rows of x) or in the first one (decode). Decides speed only.
int64_t panel_rows(int64_t k, int64_t n_rows);

/// Strips that a worker takes at a time, of n_strips in all: few when the workers would not share them evenly.
int64_t strip_run(int64_t n_strips, int n_workers);

/// Work of linear_many, per worker. part_rows: rows that meet packed weights, or 0.
struct PanelWork {
  float* weights;
  float* lanes;
  float* part;  // a strip wide
  PanelWork(Scratch& scratch, int64_t features, int64_t part_rows);
};

/// Rows whose codes stay in the second cache while strips pass by: a multiple of what register tiles take. Decides
/// speed only.
int64_t q8_group_rows(int64_t cols);

/// The activations of products on packed weights, in groups of neighbouring rows: see Q8Rows.
class Q8Batch {
 public:
  Q8Batch(Scratch& scratch, int64_t cols, int64_t rows);
  /// The group that begins with row `first`, a multiple of group_rows.
  Q8Rows group(int64_t first) const;

  int64_t n_rows;
  int64_t group_rows;  ///< the last group may be smaller
  int64_t n_blocks;    ///< of a row

 private:
  int64_t blocks_;  // of all rows
  int8_t* codes_;
  float *scales_, *scaled_sums_;
  int32_t *sums_, *starts_;
};

/// Rows of a batch that attention takes at a time for one KV head.
int64_t attention_tile_rows(int64_t heads_per_kv_head);

/// Work of attention, per worker: a KV block as float, and the queries of one tile.
struct AttentionWork {
  float *keys, *values;     // kKvBlockPositions rows of head_dim
  float *queries, *scores;  // per query: head_dim and kKvBlockPositions floats
  float *block_out, *out;   // per query: head_dim floats
  float* parts;             // per query: two SoftmaxParts (of the block, of all so far)
  float* lanes;             // of product()
  AttentionWork(Scratch& scratch, int64_t heads, int64_t head_dim);
};

/// Rows of one span whose KV blocks are shared out to the workers one by one.
inline constexpr int64_t kSplitRows = 4;

/// Partial results of attention, for spans of at most kSplitRows rows: [row][head][block].
struct AttentionParts {
  float* out;      // head_dim floats each
  float* parts;    // SoftmaxPart each
  float* queries;  // [kv head][row][head of the group]: head_dim floats
  AttentionParts(Scratch& scratch, int64_t heads, int64_t head_dim, int64_t positions);
};

/// Normalised q and k of all rows, [key head][row][S], their products k . q, [key head][row], and both gates,
/// [row][value head].
struct DeltaInputs {
  int64_t n_rows;
  float *q, *k, *key_query, *decay, *strength;
  DeltaInputs(Scratch& scratch, const DeltaShape& shape, int64_t rows);
};

/// Tokens that the chunked form takes at a time.
inline constexpr int64_t kDeltaChunk = 64;

/// Work of the chunked delta rule, per worker. [i] is a token of the chunk.
struct ChunkWork {
  float *read_k, *read_q;        // [i][S]: M k_i and M q_i
  float *solved, *out;           // [i][S]: v' and what the chunk itself adds to the output
  float *overlap_k, *overlap_q;  // [i][i]
  float* transposed;             // [S][i]: v' times what is left of it at the end of the chunk
  float* lanes;                  // of product()
  ChunkWork(Scratch& scratch, int64_t size);
};

/// Channels that one worker takes of the convolution.
inline constexpr int64_t kConvChannels = 512;
inline constexpr int64_t kMostTaps = 16;

/// Work of the convolution, per worker: transposed taps and the inputs that the state will keep.
struct ConvWork {
  float *weights, *history;  // [tap][kConvChannels]
  explicit ConvWork(Scratch& scratch);
};

class Workspace {
 public:
  static int64_t size_bytes(const WorkLimits& limits, int n_workers, bool q8);
  /// Grows to the larger of the old and new limits.
  void reserve(const WorkLimits& limits, int n_workers, bool q8);
  const WorkLimits& limits() const { return limits_; }

  /// Throws Error(internal) when nothing was reserved.
  Scratch worker(int index) const;
  Scratch shared() const;

 private:
  WorkLimits limits_;
  Arena arena_;
  int64_t worker_bytes_ = 0;
  int64_t shared_bytes_ = 0;
  int n_workers_ = 0;
};

}  // namespace kz
