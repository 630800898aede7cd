// The KV cache and softmax attention.
//
// One code computes (largest score, sum, output) of a block of 256 positions for some queries of one KV head; blocks
// are merged in ascending order. Long spans share out tiles of rows and every worker walks all blocks; spans of a few
// rows share out the blocks and merge afterwards. Either way each row goes through the same operations.
#include <cstring>

#include "backend/key_rows.h"
#include "backend/kv_row.h"
#include "core/error.h"
#include "cpu/backend_impl.h"

namespace kz {
namespace {

SoftmaxPart* as_parts(float* floats) { return reinterpret_cast<SoftmaxPart*>(floats); }

/// What attention of one layer of one span needs to know.
struct SpanView {
  const Tensor& q;
  const Tensor& out;
  float scale;
  int64_t layer;
  const Span& span;
  const KvPool& kv;
  int64_t n_kv_heads, group, key_dim, value_dim;  // group: query heads per KV head

  SpanView(const Tensor& queries, const Tensor& outputs, float factor, int64_t layer_index, const Span& rows)
      : q(queries), out(outputs), scale(factor), layer(layer_index), span(rows), kv(rows.state->pool()) {
    const AttentionLayout& layout = kv.layout(layer);
    n_kv_heads = layout.n_kv_heads;
    group = q.ne[1] / n_kv_heads;
    key_dim = layout.key_dim;
    value_dim = layout.value_dim;
    KZ_CHECK(q.ne[1] % n_kv_heads == 0 && q.ne[0] == key_dim && out.ne[0] == value_dim && out.ne[1] == q.ne[1]);
  }

  int64_t n_positions() const { return span.position + span.n_rows; }
  int64_t n_blocks() const { return (n_positions() + kKvBlockPositions - 1) / kKvBlockPositions; }
  int64_t tile_rows() const { return attention_tile_rows(group); }
  int64_t n_tiles() const { return (span.n_rows + tile_rows() - 1) / tile_rows(); }
  /// Positions of a block that row r of the span sees (itself included).
  int64_t visible(int64_t r, int64_t block) const {
    return std::clamp<int64_t>(span.position + r + 1 - block * kKvBlockPositions, 0, kKvBlockPositions);
  }
};

/// Consecutive rows of a span, all query heads of one KV head. Query (row r, head g of the group) has the index
/// r * group + g.
struct Tile {
  const SpanView& view;
  int64_t kv_head, first_row, n_rows;
  int64_t n_queries() const { return n_rows * view.group; }
};

struct FloatRows {
  const float* data;
  int64_t stride;
};

class BlockAttention {
 public:
  /// queries: of the tile, as gather_queries() leaves them.
  BlockAttention(const Kernels& kernels, const AttentionWork& work, const float* queries)
      : kernels_(kernels), work_(work), queries_(queries) {}

  static void gather_queries(const Tile& t, float* to) {
    for (int64_t r = 0; r < t.n_rows; ++r) {
      for (int64_t g = 0; g < t.view.group; ++g) {
        const float* from = t.view.q.f32(t.kv_head * t.view.group + g, t.view.span.first_row + t.first_row + r);
        float* query = to + (r * t.view.group + g) * t.view.key_dim;
        std::memcpy(query, from, static_cast<size_t>(t.view.key_dim) * sizeof(float));
        // Q8_0 keys lie rotated and centred: the query is rotated too, and softmax does not see the centre.
        if (t.view.kv.key_type() == DType::q8_0) rotate_features(query, t.view.key_dim);
      }
    }
  }

  /// Computes block_out and the first half of parts for the queries that see the block; returns the first of them.
  int64_t run(const Tile& t, int64_t block) const {
    const SpanView& v = t.view;
    int64_t from = 0;
    while (v.visible(t.first_row + from, block) == 0) ++from;
    const int64_t n = v.visible(t.first_row + t.n_rows - 1, block);
    const int64_t q0 = from * v.group, n_queries = t.n_queries() - q0;
    const int32_t id = v.span.state->blocks()[static_cast<size_t>(block)];

    const std::byte *keys = v.kv.keys(id, v.layer, t.kv_head), *values = v.kv.values(id, v.layer, t.kv_head);

    score(t, q0, keys, n);
    fetch_first(values);
    for (int64_t q = q0; q < t.n_queries(); ++q) {
      as_parts(work_.parts)[q] =
          kernels_.softmax(work_.scores + q * kKvBlockPositions, v.visible(t.first_row + q / v.group, block), v.scale);
    }
    std::memset(work_.block_out + q0 * v.value_dim, 0, static_cast<size_t>(n_queries * v.value_dim) * sizeof(float));
    if (reads_in_place(v.kv.value_type(), v.value_dim, n_queries)) {
      mix_in_place(t, block, from, values);
    } else {
      mix(t, block, from, load(v.kv.value_type(), values, v.kv.value_row_bytes(v.layer), v.value_dim, n, work_.values));
    }
    return q0;
  }

 private:
  /// Few queries take the rows as they are stored; for many it pays to turn them to float once. Same bits either way.
  bool reads_in_place(DType type, int64_t dim, int64_t n_queries) const {
    constexpr int64_t kFewQueries = 8;
    return n_queries <= kFewQueries && dim % 32 == 0 && kernels_.stored_mix(static_cast<int32_t>(type)) != nullptr;
  }

  static void fetch_first(const std::byte* rows) {
    for (int64_t at = 0; at < 4096; at += 64) __builtin_prefetch(rows + at);
  }

  void score(const Tile& t, int64_t q0, const std::byte* rows, int64_t n) const {
    const SpanView& v = t.view;
    const DType type = v.kv.key_type();
    const int64_t n_queries = t.n_queries() - q0, row_bytes = v.kv.key_row_bytes(v.layer);
    if (reads_in_place(type, v.key_dim, n_queries)) {
      kernels_.stored_scores(static_cast<int32_t>(type))({rows, row_bytes, n, v.key_dim, queries_ + q0 * v.key_dim,
                                                          n_queries, work_.scores + q0 * kKvBlockPositions,
                                                          kKvBlockPositions});
      return;
    }
    const FloatRows keys = load(type, rows, row_bytes, v.key_dim, n, work_.keys);
    ProductArgs args;
    args.weights = keys.data;
    args.weight_stride = keys.stride;
    args.n_weights = n;
    args.x = queries_ + q0 * v.key_dim;
    args.x_stride = args.k = v.key_dim;
    args.n_rows = n_queries;
    args.out = work_.scores + q0 * kKvBlockPositions;
    args.out_stride = kKvBlockPositions;
    args.lanes = work_.lanes;
    kernels_.product(args);
  }

  /// n cached rows as float; F32 caches are read in place.
  FloatRows load(DType type, const std::byte* rows, int64_t bytes_per_row, int64_t dim, int64_t n, float* to) const {
    if (type == DType::f32) {
      return {reinterpret_cast<const float*>(rows), bytes_per_row / static_cast<int64_t>(sizeof(float))};
    }
    const DequantiseKernel kernel = kernels_.dequantise(static_cast<int32_t>(type));
    KZ_CHECK(kernel != nullptr);
    for (int64_t u = 0; u < n; ++u) kernel(rows + u * bytes_per_row, to + u * dim, dim);
    return {to, dim};
  }

  /// All rows of the tile see the positions that its first row sees: those at once, the rest row by row.
  void mix(const Tile& t, int64_t block, int64_t from, const FloatRows& values) const {
    const SpanView& v = t.view;
    const int64_t common = v.visible(t.first_row + from, block);
    add_weighted(t, from, t.n_rows - from, 0, common, values);
    for (int64_t r = from; r < t.n_rows; ++r) {
      const int64_t n = v.visible(t.first_row + r, block);
      if (n > common) add_weighted(t, r, 1, common, n, values);
    }
  }

  /// The positions that each row sees, row by row: they ascend for every output, as in mix().
  void mix_in_place(const Tile& t, int64_t block, int64_t from, const std::byte* values) const {
    const SpanView& v = t.view;
    const int64_t row_bytes = v.kv.value_row_bytes(v.layer), common = v.visible(t.first_row + from, block);
    const auto add = [&](int64_t row, int64_t n_rows, int64_t begin, int64_t end) {
      const int64_t q0 = row * v.group;
      kernels_.stored_mix(static_cast<int32_t>(v.kv.value_type()))(
          {values + begin * row_bytes, row_bytes, end - begin, v.value_dim,
           work_.scores + q0 * kKvBlockPositions + begin, kKvBlockPositions, n_rows * v.group,
           work_.block_out + q0 * v.value_dim, v.value_dim});
    };
    add(from, t.n_rows - from, 0, common);
    for (int64_t r = from; r < t.n_rows; ++r) {
      const int64_t n = v.visible(t.first_row + r, block);
      if (n > common) add(r, 1, common, n);
    }
  }

  void add_weighted(const Tile& t, int64_t row, int64_t n_rows, int64_t begin, int64_t end,
                    const FloatRows& values) const {
    const int64_t q0 = row * t.view.group;
    WeightedSumArgs args;
    args.weights = work_.scores + q0 * kKvBlockPositions + begin;
    args.weight_stride = kKvBlockPositions;
    args.values = values.data + begin * values.stride;
    args.value_stride = values.stride;
    args.n = end - begin;
    args.dim = args.out_stride = t.view.value_dim;
    args.out = work_.block_out + q0 * t.view.value_dim;
    args.n_rows = n_rows * t.view.group;
    kernels_.weighted_sum(args);
  }

  const Kernels& kernels_;
  const AttentionWork& work_;
  const float* queries_;
};

/// One tile over all its blocks.
void attend_tile(const Kernels& kernels, const AttentionWork& work, const Tile& t) {
  const SpanView& v = t.view;
  const BlockAttention attention(kernels, work, work.queries);
  SoftmaxPart* block_parts = as_parts(work.parts);
  SoftmaxPart* parts = block_parts + t.n_queries();
  BlockAttention::gather_queries(t, work.queries);
  const int64_t last_position = v.span.position + t.first_row + t.n_rows - 1;
  for (int64_t block = 0; block <= last_position / kKvBlockPositions; ++block) {
    for (int64_t q = attention.run(t, block); q < t.n_queries(); ++q) {
      float *out = work.out + q * v.value_dim, *block_out = work.block_out + q * v.value_dim;
      if (block == 0) {
        std::memcpy(out, block_out, static_cast<size_t>(v.value_dim) * sizeof(float));
        parts[q] = block_parts[q];
      } else {
        parts[q] = kernels.merge(out, parts[q], block_out, block_parts[q], v.value_dim);
      }
    }
  }
  for (int64_t q = 0; q < t.n_queries(); ++q) {
    float* to = v.out.f32(t.kv_head * v.group + q % v.group, v.span.first_row + t.first_row + q / v.group);
    kernels.divide(work.out + q * v.value_dim, parts[q].sum, to, v.value_dim);
  }
}

/// One block for all rows of a short span; results go to their places among the partial results.
void attend_block(const Kernels& kernels, const AttentionWork& work, const AttentionParts& to, const Tile& t,
                  int64_t block) {
  const SpanView& v = t.view;
  const BlockAttention attention(kernels, work, to.queries + t.kv_head * t.n_queries() * v.key_dim);
  for (int64_t q = attention.run(t, block); q < t.n_queries(); ++q) {
    const int64_t head = t.kv_head * v.group + q % v.group;
    const int64_t slot = (q / v.group * v.q.ne[1] + head) * v.n_blocks() + block;
    std::memcpy(to.out + slot * v.value_dim, work.block_out + q * v.value_dim,
                static_cast<size_t>(v.value_dim) * sizeof(float));
    as_parts(to.parts)[slot] = as_parts(work.parts)[q];
  }
}

/// Merges the blocks of one row and head, in ascending order.
void merge_blocks(const Kernels& kernels, const AttentionParts& from, const SpanView& v, int64_t row, int64_t head) {
  const int64_t first = (row * v.q.ne[1] + head) * v.n_blocks();
  float* out = from.out + first * v.value_dim;
  SoftmaxPart part = as_parts(from.parts)[first];
  for (int64_t block = 1; block < v.n_blocks() && v.visible(row, block) > 0; ++block) {
    part = kernels.merge(out, part, out + block * v.value_dim, as_parts(from.parts)[first + block], v.value_dim);
  }
  kernels.divide(out, part.sum, v.out.f32(head, v.span.first_row + row), v.value_dim);
}

/// Whether the blocks of a span are shared out rather than its rows.
bool splits_blocks(const SpanView& v) { return v.span.n_rows <= kSplitRows && v.n_tiles() == 1 && v.n_blocks() > 1; }

}  // namespace

void CpuBackend::append(Tensor k, Tensor v, int64_t layer, const Rows& rows) {
  const VerbTimer timer = count(kAppend);
  KZ_CHECK(k.ne[2] == rows.size() && v.ne[2] == rows.size());
  for (const Span& span : rows.spans) {
    const KvPool& kv = span.state->pool();
    const AttentionLayout& layout = kv.layout(layer);
    KZ_CHECK(span.position == span.state->position() && span.n_rows <= span.state->pending());
    KZ_CHECK(k.ne[0] == layout.key_dim && v.ne[0] == layout.value_dim);
    KZ_CHECK(k.ne[1] == layout.n_kv_heads && v.ne[1] == layout.n_kv_heads);
    take_key_centres(k, layer, span);
    for_pieces(rows_of(k, span.first_row, span.n_rows), [&](int64_t head, int64_t r) {
      const int64_t position = span.position + r, at = position % kKvBlockPositions, row = span.first_row + r;
      const int32_t block = span.state->blocks()[static_cast<size_t>(position / kKvBlockPositions)];
      store_key_row(*span.state, layer, head, k.f32(head, row),
                    kv.keys(block, layer, head) + at * kv.key_row_bytes(layer));
      store_kv_row(kv.value_type(), v.f32(head, row), kv.values(block, layer, head) + at * kv.value_row_bytes(layer),
                   layout.value_dim);
    });
  }
}

void CpuBackend::attention(Tensor q, float scale, int64_t layer, const Rows& rows, Tensor out) {
  const VerbTimer timer = count(kAttention, kv_bytes(rows, layer));
  KZ_CHECK(q.ne[2] == rows.size() && out.ne[2] == rows.size());
  int64_t n_tiles = 0;
  for (const Span& span : rows.spans) {
    const SpanView v(q, out, scale, layer, span);
    if (!splits_blocks(v)) n_tiles += v.n_tiles() * v.n_kv_heads;
  }
  pool_.parallel_for(n_tiles, 1, [&](int64_t begin, int64_t end, int worker) {
    Scratch scratch = workspace_.worker(worker);
    const AttentionWork work(scratch, q.ne[1], std::max(q.ne[0], out.ne[0]));
    for (int64_t index = begin; index < end; ++index) {
      int64_t local = index;
      for (const Span& span : rows.spans) {
        const SpanView v(q, out, scale, layer, span);
        const int64_t n = splits_blocks(v) ? 0 : v.n_tiles() * v.n_kv_heads;
        if (local < n) {
          const int64_t first = local / v.n_kv_heads * v.tile_rows();
          attend_tile(kernels_, work, {v, local % v.n_kv_heads, first, std::min(v.tile_rows(), span.n_rows - first)});
          break;
        }
        local -= n;
      }
    }
  });
  for (const Span& span : rows.spans) {
    const SpanView v(q, out, scale, layer, span);
    if (!splits_blocks(v)) continue;
    Scratch shared = workspace_.shared();
    const AttentionParts parts(shared, q.ne[1], std::max(v.key_dim, v.value_dim), v.n_positions());
    for (int64_t head = 0; head < v.n_kv_heads; ++head) {
      BlockAttention::gather_queries({v, head, 0, span.n_rows},
                                     parts.queries + head * span.n_rows * v.group * v.key_dim);
    }
    pool_.parallel_for(v.n_kv_heads * v.n_blocks(), 1, [&](int64_t begin, int64_t end, int worker) {
      Scratch scratch = workspace_.worker(worker);
      const AttentionWork work(scratch, q.ne[1], std::max(q.ne[0], out.ne[0]));
      for (int64_t i = begin; i < end; ++i) {
        attend_block(kernels_, work, parts, {v, i % v.n_kv_heads, 0, span.n_rows}, i / v.n_kv_heads);
      }
    });
    pool_.parallel_for(span.n_rows * q.ne[1], 8, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) merge_blocks(kernels_, parts, v, i / q.ne[1], i % q.ne[1]);
    });
  }
}

}  // namespace kz
