#include "cpu/workspace.h"

#include "core/error.h"
#include "cpu/kernels.h"
#include "cpu/strip/strip.h"

namespace kz {
namespace {

constexpr int64_t kMostPanelRows = 64;
constexpr int64_t kLeastPanelRows = 8;
constexpr int64_t kPanelFloats = 512 * 1024 / sizeof(float);       // many rows: a quarter of a common second cache
constexpr int64_t kDecodePanelFloats = 32 * 1024 / sizeof(float);  // few rows: a first cache
constexpr int64_t kTileQueries = 64;

template <class Part, class... Sizes>
int64_t measure(const Sizes&... sizes) {
  Scratch scratch;
  Part(scratch, sizes...);
  return static_cast<int64_t>(scratch.used_bytes());
}

int64_t worker_bytes(const WorkLimits& l, bool q8) {
  int64_t bytes = measure<PanelWork>(l.features, q8 ? l.rows : 0);
  if (l.heads > 0) bytes = std::max(bytes, measure<AttentionWork>(l.heads, l.head_dim));
  if (l.delta.state_size > 0) {
    bytes = std::max({bytes, measure<ChunkWork>(l.delta.state_size), measure<ConvWork>()});
  }
  return (bytes + 63) / 64 * 64;
}

int64_t shared_bytes(const WorkLimits& l, bool q8) {
  int64_t bytes = q8 ? measure<Q8Batch>(l.features, l.rows) : 0;
  if (l.heads > 0) bytes = std::max(bytes, measure<AttentionParts>(l.heads, l.head_dim, l.positions));
  if (l.delta.state_size > 0) bytes = std::max(bytes, measure<DeltaInputs>(l.delta, l.rows));
  return bytes;
}

WorkLimits larger(const WorkLimits& a, const WorkLimits& b) {
  WorkLimits l;
  l.rows = std::max(a.rows, b.rows);
  l.heads = std::max(a.heads, b.heads);
  l.head_dim = std::max(a.head_dim, b.head_dim);
  l.positions = std::max(a.positions, b.positions);
  l.features = std::max(a.features, b.features);
  l.delta.n_key_heads = std::max(a.delta.n_key_heads, b.delta.n_key_heads);
  l.delta.n_value_heads = std::max(a.delta.n_value_heads, b.delta.n_value_heads);
  l.delta.state_size = std::max(a.delta.state_size, b.delta.state_size);
  return l;
}

}  // namespace

int64_t panel_rows(int64_t k, int64_t n_rows) {
  const int64_t floats = n_rows > kMostTileRows ? kPanelFloats : kDecodePanelFloats;
  return std::clamp(floats / std::max<int64_t>(k, 1) / 4 * 4, kLeastPanelRows, kMostPanelRows);
}

PanelWork::PanelWork(Scratch& scratch, int64_t features, int64_t part_rows) {
  const int64_t floats = std::max({kPanelFloats, kDecodePanelFloats, kLeastPanelRows * features});
  weights = scratch.take(floats, 1).f32();
  lanes = scratch.take(kMostPanelRows * kMostTileRows * kLanes, 1).f32();
  part = part_rows > 0 ? scratch.take(kStripRows, part_rows).f32() : nullptr;
}

int64_t strip_run(int64_t n_strips, int n_workers) {
  constexpr int64_t kPiecesPerWorker = 16, kMostRun = 4;
  return std::clamp<int64_t>(n_strips / (kPiecesPerWorker * n_workers), 1, kMostRun);
}

int64_t q8_group_rows(int64_t cols) {
  constexpr int64_t kCacheBytes = int64_t{1} << 20, kStep = 48;
  return std::max(kStep, kCacheBytes / std::max<int64_t>(cols, 1) / kStep * kStep);
}

Q8Batch::Q8Batch(Scratch& scratch, int64_t cols, int64_t rows)
    : n_rows(rows), group_rows(q8_group_rows(cols)), n_blocks((cols + 31) / 32), blocks_(n_blocks * rows) {
  codes_ = reinterpret_cast<int8_t*>(scratch.take(8 * blocks_, 1).data);
  scales_ = scratch.take(blocks_, 1).f32();
  sums_ = reinterpret_cast<int32_t*>(scratch.take(2 * blocks_, 1).data);
  starts_ = reinterpret_cast<int32_t*>(scratch.take(blocks_, 1).data);
  scaled_sums_ = scratch.take(blocks_, 1).f32();
}

Q8Rows Q8Batch::group(int64_t first) const {
  const int64_t at = first * n_blocks;
  Q8Rows rows;
  rows.n_rows = std::min(group_rows, n_rows - first);
  rows.n_blocks = n_blocks;
  rows.codes = codes_ + 32 * at;
  rows.scales = scales_ + at;
  rows.sums = sums_ + 2 * at;
  rows.starts = starts_ + at;
  rows.scaled_sums = scaled_sums_ + at;
  return rows;
}

int64_t attention_tile_rows(int64_t heads_per_kv_head) {
  return std::max<int64_t>(1, kTileQueries / heads_per_kv_head);
}

AttentionWork::AttentionWork(Scratch& scratch, int64_t heads, int64_t head_dim) {
  const int64_t queries_most = std::max(heads, kTileQueries);
  keys = scratch.take(head_dim, kKvBlockPositions).f32();
  values = scratch.take(head_dim, kKvBlockPositions).f32();
  queries = scratch.take(head_dim, queries_most).f32();
  scores = scratch.take(kKvBlockPositions, queries_most).f32();
  block_out = scratch.take(head_dim, queries_most).f32();
  out = scratch.take(head_dim, queries_most).f32();
  parts = scratch.take(4, queries_most).f32();
  lanes = scratch.take(product_lane_floats(kKvBlockPositions, head_dim), 1).f32();
}

AttentionParts::AttentionParts(Scratch& scratch, int64_t heads, int64_t head_dim, int64_t positions) {
  const int64_t blocks = (positions + kKvBlockPositions - 1) / kKvBlockPositions;
  out = scratch.take(head_dim, kSplitRows * heads * blocks).f32();
  parts = scratch.take(2, kSplitRows * heads * blocks).f32();
  queries = scratch.take(head_dim, kSplitRows * heads).f32();
}

DeltaInputs::DeltaInputs(Scratch& scratch, const DeltaShape& shape, int64_t rows) : n_rows(rows) {
  q = scratch.take(shape.n_key_heads * shape.state_size, rows).f32();
  k = scratch.take(shape.n_key_heads * shape.state_size, rows).f32();
  key_query = scratch.take(shape.n_key_heads, rows).f32();
  decay = scratch.take(shape.n_value_heads, rows).f32();
  strength = scratch.take(shape.n_value_heads, rows).f32();
}

ChunkWork::ChunkWork(Scratch& scratch, int64_t size) {
  read_k = scratch.take(size, kDeltaChunk).f32();
  read_q = scratch.take(size, kDeltaChunk).f32();
  solved = scratch.take(size, kDeltaChunk).f32();
  out = scratch.take(size, kDeltaChunk).f32();
  overlap_k = scratch.take(kDeltaChunk, kDeltaChunk).f32();
  overlap_q = scratch.take(kDeltaChunk, kDeltaChunk).f32();
  transposed = scratch.take(kDeltaChunk, size).f32();
  lanes = scratch.take(product_lane_floats(std::max(size, kDeltaChunk), size), 1).f32();
}

ConvWork::ConvWork(Scratch& scratch) {
  weights = scratch.take(kConvChannels, kMostTaps).f32();
  history = scratch.take(kConvChannels, kMostTaps).f32();
}

int64_t Workspace::size_bytes(const WorkLimits& limits, int n_workers, bool q8) {
  return worker_bytes(limits, q8) * n_workers + shared_bytes(limits, q8);
}

void Workspace::reserve(const WorkLimits& limits, int n_workers, bool q8) {
  const WorkLimits l = larger(limits_, limits);
  const int64_t worker = kz::worker_bytes(l, q8), shared = kz::shared_bytes(l, q8);
  if (worker > worker_bytes_ || shared > shared_bytes_ || n_workers != n_workers_) {
    arena_ = Arena();  // the old one first: both at once are not needed
    worker_bytes_ = shared_bytes_ = 0;
    arena_ = Arena("cpu work memory", static_cast<size_t>(worker * n_workers + shared));
    worker_bytes_ = worker;
    shared_bytes_ = shared;
    n_workers_ = n_workers;
  }
  limits_ = l;
}

Scratch Workspace::worker(int index) const {
  KZ_CHECK(index < n_workers_);  // reserve() was not called
  return {arena_.data() + index * worker_bytes_, static_cast<size_t>(worker_bytes_)};
}

Scratch Workspace::shared() const {
  KZ_CHECK(n_workers_ > 0);
  return {arena_.data() + n_workers_ * worker_bytes_, static_cast<size_t>(shared_bytes_)};
}

}  // namespace kz
