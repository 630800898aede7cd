// The memory of one sequence: KV rows of the attention layers, state and convolution history of the delta layers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/arena.h"
#include "core/dtype.h"

namespace kz {

/// Positions in one block of the KV cache; attention computes one partial result per block, whatever the batch.
inline constexpr int64_t kKvBlockPositions = 256;

/// One attention layer's share of a position.
struct AttentionLayout {
  int64_t n_kv_heads = 0;
  int64_t key_dim = 0;    ///< features of a key head
  int64_t value_dim = 0;  ///< features of a value head
};

/// One Gated DeltaNet layer's state.
struct DeltaLayout {
  int64_t n_value_heads = 0;
  int64_t state_size = 0;     ///< S: M is S x S per value head, [value index][key index], key index contiguous
  int64_t conv_channels = 0;  ///< 2 * n_key_heads * S + n_value_heads * S
  int64_t conv_history = 0;   ///< kernel - 1 past inputs, oldest first, {conv_channels, conv_history}
};

/// What a model needs to remember per sequence. Attention and delta layers are numbered apart, each from 0.
struct StateLayout {
  std::vector<AttentionLayout> attention;
  std::vector<DeltaLayout> delta;

  /// Bytes of one KV block (kKvBlockPositions positions of all attention layers).
  int64_t kv_block_bytes(DType key_type, DType value_type) const;
  /// Bytes of the key centres of one sequence (backend/key_rows.h); zero unless keys are Q8_0.
  int64_t key_centre_bytes(DType key_type) const;
  /// Bytes of the recurrent part (delta states and convolution history, F32).
  int64_t recurrent_bytes() const;
};

/// KV blocks of one layout and type pair, shared by the states that take from it. Reserves address space for
/// n_blocks; a block costs memory once it is written, and nothing again after it was given back (whole pages of it).
/// Not synchronised: states of one pool are used by one thread at a time.
class KvPool {
 public:
  /// Key and value types: F32, F16 or Q8_0 (then head dims must be multiples of 32).
  KvPool(const StateLayout& layout, int64_t n_blocks, DType key_type, DType value_type);

  DType key_type() const { return key_type_; }
  DType value_type() const { return value_type_; }
  int64_t block_bytes() const { return block_bytes_; }
  int64_t free_blocks() const { return static_cast<int64_t>(free_.size()); }

  /// Takes one block; throws Error(out_of_memory) when none is left.
  int32_t take();
  void give_back(int32_t block);

  /// The kKvBlockPositions contiguous key (value) rows of one head of one attention layer in a block.
  std::byte* keys(int32_t block, int64_t layer, int64_t head) const;
  std::byte* values(int32_t block, int64_t layer, int64_t head) const;
  const AttentionLayout& layout(int64_t layer) const { return layers_[static_cast<size_t>(layer)].layout; }
  int64_t key_row_bytes(int64_t layer) const { return layers_[static_cast<size_t>(layer)].key_row_bytes; }
  int64_t value_row_bytes(int64_t layer) const { return layers_[static_cast<size_t>(layer)].value_row_bytes; }

 private:
  struct LayerPlace {
    AttentionLayout layout;
    int64_t key_offset, value_offset, key_row_bytes, value_row_bytes;
  };
  DType key_type_, value_type_;
  int64_t block_bytes_ = 0;
  std::vector<LayerPlace> layers_;
  std::vector<int32_t> free_;
  Arena arena_;
};

/// The memory of one sequence. A forward pass writes rows provisionally; the state advances only at commit():
///   begin(n)   room for n rows after position(); with Rollback::snapshot the recurrent part is copied first
///   ... the verbs write KV rows [position, position + n) and update the recurrent part in place
///   commit(m)  m == n: all rows become part of the sequence; m == 0: as if nothing had run (needs the snapshot when
///              the model has delta layers); for attention-only layouts any m <= n.
/// A state whose forward was abandoned (begin without commit) must be cleared or committed before the next begin.
class State {
 public:
  enum class Rollback { none, snapshot };

  /// capacity: most positions this sequence may reach. Allocates all recurrent memory (twice with snapshot).
  State(const StateLayout& layout, std::shared_ptr<KvPool> pool, int64_t capacity, Rollback rollback = Rollback::none);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  int64_t position() const { return position_; }  ///< tokens in the sequence
  int64_t capacity() const { return capacity_; }
  int64_t pending() const { return pending_; }  ///< rows begun and not committed, else 0

  /// Throws Error(bad_argument) when position + n_rows exceeds the capacity.
  void begin(int64_t n_rows);
  void commit(int64_t n_rows);
  /// Back to the empty sequence: recurrent memory zero, KV blocks given back.
  void clear();
  /// Copies the recurrent part, so that the sequence can be cut back to this position once more tokens have come. One
  /// copy: the next call replaces it, clear() drops it. Allocates at the first call, nothing without delta layers.
  void keep();
  /// True if the first n tokens can be kept by dropping those behind: n == position(), or no delta layers, or the
  /// recurrent part of that position was kept.
  bool can_cut_to(int64_t n) const;
  void cut_to(int64_t n);

  // For the verbs. Layer counts attention (delta) layers only.
  const KvPool& pool() const { return *pool_; }
  /// Blocks that hold positions [0, position + pending), in order.
  std::span<const int32_t> blocks() const { return blocks_; }
  float* delta_state(int64_t layer) const;   ///< [n_value_heads][S][S]
  float* conv_history(int64_t layer) const;  ///< [conv_history][conv_channels]
  /// key_dim floats: what Q8_0 keys of this head are measured from (backend/key_rows.h). Only when keys are Q8_0.
  float* key_centre(int64_t layer, int64_t head) const;

  /// Bytes held for recurrent memory, the snapshot included.
  int64_t recurrent_bytes() const { return recurrent_bytes_; }
  /// Bytes of the copy that keep() made.
  int64_t kept_bytes() const { return static_cast<int64_t>(kept_.size_bytes()); }
  int64_t kv_bytes() const { return static_cast<int64_t>(blocks_.size()) * pool_->block_bytes(); }

 private:
  void drop_blocks_behind(int64_t n_positions);
  size_t one_copy_bytes() const;

  StateLayout layout_;
  std::shared_ptr<KvPool> pool_;
  int64_t capacity_ = 0;
  int64_t position_ = 0;
  int64_t pending_ = 0;
  std::vector<int32_t> blocks_;
  std::vector<int64_t> delta_offset_, conv_offset_;  // floats
  int64_t recurrent_bytes_ = 0;
  Arena recurrent_;
  Arena snapshot_;
  Arena kept_;
  int64_t kept_position_ = -1;          // of the copy, -1: none
  std::vector<int64_t> centre_offset_;  // floats, per attention layer; empty unless keys are Q8_0
  std::unique_ptr<float[]> centres_;    // every sequence's first key writes them again
};

}  // namespace kz
