#include "backend/state.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace kz {
namespace {

/// Memory that every token walks over is asked for in large pages, unless their size (2 MB) would show in the sum.
constexpr int64_t kLargePagesFrom = int64_t{4} << 20;

/// Every piece of a block and of the recurrent memory starts at a multiple of this (one cache line).
constexpr int64_t kAlignBytes = 64;

int64_t aligned(int64_t size_bytes) { return (size_bytes + kAlignBytes - 1) / kAlignBytes * kAlignBytes; }

int64_t key_piece_bytes(const AttentionLayout& a, DType type) {
  return aligned(a.n_kv_heads * kKvBlockPositions * row_bytes(type, a.key_dim));
}

int64_t value_piece_bytes(const AttentionLayout& a, DType type) {
  return aligned(a.n_kv_heads * kKvBlockPositions * row_bytes(type, a.value_dim));
}

int64_t delta_state_bytes(const DeltaLayout& d) { return aligned(4 * d.n_value_heads * d.state_size * d.state_size); }

int64_t conv_history_bytes(const DeltaLayout& d) { return aligned(4 * d.conv_history * d.conv_channels); }

int64_t blocks_for(int64_t n_positions) { return (n_positions + kKvBlockPositions - 1) / kKvBlockPositions; }

/// `dim` picks the head dim that is stored with this type.
void check_kv_type(const StateLayout& layout, DType type, const std::string& which, int64_t AttentionLayout::* dim) {
  const std::string what = "KV cache: " + which + " type " + std::string(dtype_name(type));
  if (type != DType::f32 && type != DType::f16 && type != DType::q8_0) {
    throw Error(ErrorCode::bad_argument, what + " is not one of F32, F16, Q8_0");
  }
  const int64_t block = dtype_info(type).block_elements;
  for (size_t i = 0; i < layout.attention.size(); ++i) {
    const int64_t found = layout.attention[i].*dim;
    if (found % block == 0) continue;
    throw Error(ErrorCode::unsupported, what + " needs head dims that are multiples of " + std::to_string(block) +
                                            ", attention layer " + std::to_string(i) + " has " + std::to_string(found));
  }
}

}  // namespace

int64_t StateLayout::kv_block_bytes(DType key_type, DType value_type) const {
  int64_t sum = 0;
  for (const AttentionLayout& a : attention) sum += key_piece_bytes(a, key_type) + value_piece_bytes(a, value_type);
  return sum;
}

int64_t StateLayout::key_centre_bytes(DType key_type) const {
  int64_t sum = 0;
  for (const AttentionLayout& a : attention) sum += 4 * a.n_kv_heads * a.key_dim;
  return key_type == DType::q8_0 ? sum : 0;
}

int64_t StateLayout::recurrent_bytes() const {
  int64_t sum = 0;
  for (const DeltaLayout& d : delta) sum += delta_state_bytes(d) + conv_history_bytes(d);
  return sum;
}

// --- KvPool ----------------------------------------------------------------------------------------------------

KvPool::KvPool(const StateLayout& layout, int64_t n_blocks, DType key_type, DType value_type)
    : key_type_(key_type), value_type_(value_type) {
  check_kv_type(layout, key_type, "key", &AttentionLayout::key_dim);
  check_kv_type(layout, value_type, "value", &AttentionLayout::value_dim);
  KZ_CHECK(n_blocks >= 0 && n_blocks <= INT32_MAX);
  for (const AttentionLayout& a : layout.attention) {
    LayerPlace place{};
    place.layout = a;
    place.key_row_bytes = row_bytes(key_type, a.key_dim);
    place.value_row_bytes = row_bytes(value_type, a.value_dim);
    place.key_offset = block_bytes_;
    block_bytes_ += key_piece_bytes(a, key_type);
    place.value_offset = block_bytes_;
    block_bytes_ += value_piece_bytes(a, value_type);
    layers_.push_back(place);
  }
  KZ_CHECK(block_bytes_ == layout.kv_block_bytes(key_type, value_type));
  if (block_bytes_ > 0 && n_blocks > 0) {
    if (n_blocks > INT64_MAX / block_bytes_) {
      throw Error(ErrorCode::out_of_memory, "KV cache: " + std::to_string(n_blocks) + " blocks of " +
                                                std::to_string(block_bytes_) + " bytes exceed the address space");
    }
    arena_ = Arena("KV", static_cast<size_t>(n_blocks * block_bytes_));
    if (block_bytes_ >= kLargePagesFrom) arena_.prefer_large_pages();
  }
  free_.reserve(static_cast<size_t>(n_blocks));  // give_back() must not allocate
  for (int64_t i = n_blocks - 1; i >= 0; --i) free_.push_back(static_cast<int32_t>(i));
}

int32_t KvPool::take() {
  if (free_.empty()) {
    throw Error(ErrorCode::out_of_memory, "KV cache: all blocks of " + std::to_string(kKvBlockPositions) +
                                              " positions are in use by other sequences");
  }
  const int32_t block = free_.back();
  free_.pop_back();
  return block;
}

void KvPool::give_back(int32_t block) {
  KZ_CHECK(block >= 0 && free_.size() < free_.capacity());
  const auto size = static_cast<size_t>(block_bytes_);
  if (size > 0) arena_.discard(static_cast<size_t>(block) * size, size);
  free_.push_back(block);
}

std::byte* KvPool::keys(int32_t block, int64_t layer, int64_t head) const {
  const LayerPlace& place = layers_[static_cast<size_t>(layer)];
  return arena_.data() + block * block_bytes_ + place.key_offset + head * kKvBlockPositions * place.key_row_bytes;
}

std::byte* KvPool::values(int32_t block, int64_t layer, int64_t head) const {
  const LayerPlace& place = layers_[static_cast<size_t>(layer)];
  return arena_.data() + block * block_bytes_ + place.value_offset + head * kKvBlockPositions * place.value_row_bytes;
}

// --- State -----------------------------------------------------------------------------------------------------

State::State(const StateLayout& layout, std::shared_ptr<KvPool> pool, int64_t capacity, Rollback rollback)
    : layout_(layout), pool_(std::move(pool)), capacity_(capacity) {
  KZ_CHECK(pool_ != nullptr && capacity_ >= 0);
  KZ_CHECK(pool_->block_bytes() == layout_.kv_block_bytes(pool_->key_type(), pool_->value_type()));
  int64_t offset_bytes = 0;
  for (const DeltaLayout& d : layout_.delta) {
    delta_offset_.push_back(offset_bytes / 4);
    offset_bytes += delta_state_bytes(d);
    conv_offset_.push_back(offset_bytes / 4);
    offset_bytes += conv_history_bytes(d);
  }
  if (offset_bytes > 0) {
    recurrent_ = Arena("recurrent state", static_cast<size_t>(offset_bytes));
    if (offset_bytes >= kLargePagesFrom) recurrent_.prefer_large_pages();
    recurrent_bytes_ = offset_bytes;
    if (rollback == Rollback::snapshot) {
      snapshot_ = Arena("recurrent snapshot", static_cast<size_t>(offset_bytes));
      recurrent_bytes_ += offset_bytes;
    }
  }
  if (!layout_.attention.empty()) blocks_.reserve(static_cast<size_t>(blocks_for(capacity_)));
  if (const int64_t centre_bytes = layout_.key_centre_bytes(pool_->key_type()); centre_bytes > 0) {
    centres_ = std::make_unique<float[]>(static_cast<size_t>(centre_bytes / 4));
    int64_t offset = 0;
    for (const AttentionLayout& a : layout_.attention) {
      centre_offset_.push_back(offset);
      offset += a.n_kv_heads * a.key_dim;
    }
  }
}

State::~State() { drop_blocks_behind(0); }

void State::begin(int64_t n_rows) {
  KZ_CHECK(n_rows > 0 && pending_ == 0);
  if (n_rows > capacity_ - position_) {
    throw Error(ErrorCode::bad_argument, "sequence: " + std::to_string(position_) + " tokens and " +
                                             std::to_string(n_rows) + " more exceed its capacity of " +
                                             std::to_string(capacity_));
  }
  if (!layout_.attention.empty()) {
    const auto wanted = static_cast<size_t>(blocks_for(position_ + n_rows));
    try {
      while (blocks_.size() < wanted) blocks_.push_back(pool_->take());
    } catch (...) {
      drop_blocks_behind(position_);
      throw;
    }
  }
  if (snapshot_.data() != nullptr) std::memcpy(snapshot_.data(), recurrent_.data(), one_copy_bytes());
  pending_ = n_rows;
}

void State::commit(int64_t n_rows) {
  KZ_CHECK(n_rows >= 0 && n_rows <= pending_);
  if (n_rows != pending_ && !layout_.delta.empty()) {
    KZ_CHECK(n_rows == 0 && snapshot_.data() != nullptr);  // a recurrent state cannot be cut, only restored
    std::memcpy(recurrent_.data(), snapshot_.data(), one_copy_bytes());
  }
  position_ += n_rows;
  pending_ = 0;
  drop_blocks_behind(position_);
}

void State::clear() {
  if (recurrent_.data() != nullptr) std::memset(recurrent_.data(), 0, one_copy_bytes());
  position_ = 0;
  pending_ = 0;
  kept_position_ = -1;
  drop_blocks_behind(0);
}

void State::keep() {
  KZ_CHECK(pending_ == 0);
  if (layout_.delta.empty()) return;
  if (kept_.data() == nullptr) kept_ = Arena("kept recurrent state", one_copy_bytes());
  std::memcpy(kept_.data(), recurrent_.data(), one_copy_bytes());
  kept_position_ = position_;
}

bool State::can_cut_to(int64_t n) const {
  return n >= 0 && n <= position_ && (n == position_ || layout_.delta.empty() || n == kept_position_);
}

void State::cut_to(int64_t n) {
  KZ_CHECK(pending_ == 0 && can_cut_to(n));
  if (n != position_ && !layout_.delta.empty()) std::memcpy(recurrent_.data(), kept_.data(), one_copy_bytes());
  if (n < kept_position_) kept_position_ = -1;
  position_ = n;
  drop_blocks_behind(position_);
}

float* State::delta_state(int64_t layer) const {
  return reinterpret_cast<float*>(recurrent_.data()) + delta_offset_[static_cast<size_t>(layer)];
}

float* State::conv_history(int64_t layer) const {
  return reinterpret_cast<float*>(recurrent_.data()) + conv_offset_[static_cast<size_t>(layer)];
}

float* State::key_centre(int64_t layer, int64_t head) const {
  KZ_CHECK(centres_ != nullptr);
  const auto at = static_cast<size_t>(layer);
  return centres_.get() + centre_offset_[at] + head * layout_.attention[at].key_dim;
}

void State::drop_blocks_behind(int64_t n_positions) {
  const auto wanted = static_cast<size_t>(blocks_for(n_positions));
  while (blocks_.size() > wanted) {
    pool_->give_back(blocks_.back());
    blocks_.pop_back();
  }
}

size_t State::one_copy_bytes() const { return static_cast<size_t>(layout_.recurrent_bytes()); }

}  // namespace kz
