#include "backend/state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/error.h"

namespace kz {
namespace {

StateLayout attention_only() { return {{{2, 32, 64}, {1, 64, 32}}, {}}; }
StateLayout hybrid() { return {{{2, 32, 32}}, {{3, 8, 40, 3}, {2, 16, 48, 3}}}; }

std::shared_ptr<KvPool> pool_for(const StateLayout& layout, int64_t n_blocks, DType type = DType::f32) {
  return std::make_shared<KvPool>(layout, n_blocks, type, type);
}

ErrorCode code_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

/// All floats of a state's recurrent part, in layer order.
std::vector<float> recurrent(const StateLayout& layout, const State& state) {
  std::vector<float> all;
  for (size_t i = 0; i < layout.delta.size(); ++i) {
    const DeltaLayout& d = layout.delta[i];
    const auto layer = static_cast<int64_t>(i);
    const float* m = state.delta_state(layer);
    const float* past = state.conv_history(layer);
    all.insert(all.end(), m, m + d.n_value_heads * d.state_size * d.state_size);
    all.insert(all.end(), past, past + d.conv_history * d.conv_channels);
  }
  return all;
}

void fill_recurrent(const StateLayout& layout, State& state, float value) {
  for (size_t i = 0; i < layout.delta.size(); ++i) {
    const DeltaLayout& d = layout.delta[i];
    const auto layer = static_cast<int64_t>(i);
    float* m = state.delta_state(layer);
    float* past = state.conv_history(layer);
    std::fill(m, m + d.n_value_heads * d.state_size * d.state_size, value + static_cast<float>(i));
    std::fill(past, past + d.conv_history * d.conv_channels, -value - static_cast<float>(i));
  }
}

bool all_equal(const std::vector<float>& x, float value) {
  return std::all_of(x.begin(), x.end(), [&](float f) { return f == value; });
}

// The sizes of Qwen3.5-4B: 8 attention layers, 4 KV heads of 256; 24 delta layers, 32 heads of 128, 8192 channels.
TEST(StateLayout, SizesAreThoseOfTheModelCard) {
  StateLayout layout;
  layout.attention.assign(8, {4, 256, 256});
  layout.delta.assign(24, {32, 128, 8192, 3});
  EXPECT_EQ(layout.recurrent_bytes(), 52'690'944);
  EXPECT_EQ(layout.kv_block_bytes(DType::f16, DType::f16), 32'768 * kKvBlockPositions);
  EXPECT_EQ(layout.kv_block_bytes(DType::q8_0, DType::q8_0), 17'408 * kKvBlockPositions);
  EXPECT_EQ(layout.kv_block_bytes(DType::f32, DType::f32), 65'536 * kKvBlockPositions);
  EXPECT_EQ(layout.kv_block_bytes(DType::f16, DType::q8_0), (16'384 + 8'704) * kKvBlockPositions);
}

TEST(KvPool, RowsOfBlocksLayersAndHeadsNeverOverlap) {
  const StateLayout layout = attention_only();
  for (const DType type : {DType::f32, DType::f16, DType::q8_0}) {
    KvPool pool(layout, 3, type, type);
    struct Piece {
      std::byte* data;
      int64_t size;
    };
    std::vector<Piece> pieces;
    for (int32_t block = 0; block < 3; ++block) {
      for (int64_t layer = 0; layer < 2; ++layer) {
        EXPECT_EQ(pool.key_row_bytes(layer), row_bytes(type, pool.layout(layer).key_dim));
        EXPECT_EQ(pool.value_row_bytes(layer), row_bytes(type, pool.layout(layer).value_dim));
        for (int64_t head = 0; head < pool.layout(layer).n_kv_heads; ++head) {
          pieces.push_back({pool.keys(block, layer, head), kKvBlockPositions * pool.key_row_bytes(layer)});
          pieces.push_back({pool.values(block, layer, head), kKvBlockPositions * pool.value_row_bytes(layer)});
        }
      }
    }
    for (size_t i = 0; i < pieces.size(); ++i) {
      std::memset(pieces[i].data, static_cast<int>(i + 1), static_cast<size_t>(pieces[i].size));
    }
    for (size_t i = 0; i < pieces.size(); ++i) {
      const auto expected = static_cast<std::byte>(i + 1);
      EXPECT_TRUE(
          std::all_of(pieces[i].data, pieces[i].data + pieces[i].size, [&](std::byte b) { return b == expected; }))
          << dtype_name(type) << " piece " << i;
    }
  }
}

TEST(KvPool, HandsOutEveryBlockOnceAndSaysWhenNoneIsLeft) {
  KvPool pool(attention_only(), 3, DType::f32, DType::f16);
  std::vector<int32_t> taken = {pool.take(), pool.take(), pool.take()};
  EXPECT_EQ(code_of([&] { pool.take(); }), ErrorCode::out_of_memory);
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, (std::vector<int32_t>{0, 1, 2}));
  pool.give_back(1);
  EXPECT_EQ(pool.free_blocks(), 1);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_EQ(pool.free_blocks(), 0);
}

TEST(KvPool, RefusesTypesAndShapesThatItCannotStore) {
  EXPECT_EQ(code_of([] { KvPool(attention_only(), 1, DType::q4_0, DType::f32); }), ErrorCode::bad_argument);
  EXPECT_EQ(code_of([] { KvPool(attention_only(), 1, DType::f32, DType::bf16); }), ErrorCode::bad_argument);
  const StateLayout odd{{{1, 64, 64}, {2, 48, 64}}, {}};
  EXPECT_EQ(code_of([&] { KvPool(odd, 1, DType::q8_0, DType::q8_0); }), ErrorCode::unsupported);
  try {
    KvPool(odd, 1, DType::q8_0, DType::q8_0);
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("layer 1"), std::string::npos) << text;
    EXPECT_NE(text.find("48"), std::string::npos) << text;
  }
  EXPECT_NO_THROW(KvPool(odd, 1, DType::f16, DType::q8_0));  // the values are multiples of 32
}

TEST(KvPool, RefusesMoreThanTheAddressSpace) {
  const StateLayout huge{{{1 << 20, 1 << 20, 1 << 20}}, {}};
  EXPECT_EQ(code_of([&] { KvPool(huge, INT32_MAX, DType::f32, DType::f32); }), ErrorCode::out_of_memory);
}

TEST(State, AdvancesOnlyAtCommit) {
  const StateLayout layout = attention_only();
  State state(layout, pool_for(layout, 4), 1024);
  state.begin(256);
  EXPECT_EQ(state.position(), 0);
  EXPECT_EQ(state.pending(), 256);
  EXPECT_EQ(state.blocks().size(), 1u);
  state.commit(256);
  EXPECT_EQ(state.position(), 256);
  EXPECT_EQ(state.pending(), 0);
  state.begin(1);
  EXPECT_EQ(state.blocks().size(), 2u);  // position 256 starts the second block
  state.commit(1);
  state.begin(255);
  EXPECT_EQ(state.blocks().size(), 2u);
  state.commit(255);
  EXPECT_EQ(state.position(), 512);
  EXPECT_EQ(state.kv_bytes(), 2 * layout.kv_block_bytes(DType::f32, DType::f32));
}

TEST(State, CommitsAPartOnlyWithoutDeltaLayersAndGivesTheRestBack) {
  const StateLayout layout = attention_only();
  auto pool = pool_for(layout, 4);
  State state(layout, pool, 1024);
  state.begin(600);
  EXPECT_EQ(pool->free_blocks(), 1);
  state.commit(256);
  EXPECT_EQ(state.position(), 256);
  EXPECT_EQ(pool->free_blocks(), 3);
  state.begin(300);
  state.commit(0);
  EXPECT_EQ(state.position(), 256);
  EXPECT_EQ(pool->free_blocks(), 3);

  const StateLayout mixed = hybrid();
  State recurrent_state(mixed, pool_for(mixed, 4), 1024, State::Rollback::snapshot);
  recurrent_state.begin(3);
  EXPECT_EQ(code_of([&] { recurrent_state.commit(2); }), ErrorCode::internal);
  State without(mixed, pool_for(mixed, 4), 1024);
  without.begin(3);
  EXPECT_EQ(code_of([&] { without.commit(0); }), ErrorCode::internal);
  without.commit(3);
  EXPECT_EQ(without.position(), 3);
}

TEST(State, CommitOfNothingRestoresTheSnapshot) {
  const StateLayout layout = hybrid();
  auto pool = pool_for(layout, 4);
  State state(layout, pool, 1024, State::Rollback::snapshot);
  EXPECT_EQ(state.recurrent_bytes(), 2 * layout.recurrent_bytes());
  state.begin(1);  // rolled back from the fresh state
  fill_recurrent(layout, state, 7.0f);
  state.commit(0);
  EXPECT_TRUE(all_equal(recurrent(layout, state), 0.0f));
  EXPECT_EQ(state.position(), 0);
  EXPECT_EQ(pool->free_blocks(), 4);

  state.begin(200);
  fill_recurrent(layout, state, 1.0f);
  state.commit(200);
  const std::vector<float> kept = recurrent(layout, state);
  state.begin(100);  // needs a second block
  fill_recurrent(layout, state, 50.0f);
  EXPECT_EQ(state.blocks().size(), 2u);
  state.commit(0);
  EXPECT_EQ(recurrent(layout, state), kept);
  EXPECT_EQ(state.position(), 200);
  EXPECT_EQ(state.blocks().size(), 1u);
  state.begin(5);
  fill_recurrent(layout, state, 3.0f);
  state.commit(5);
  EXPECT_NE(recurrent(layout, state), kept);
  EXPECT_EQ(state.position(), 205);
}

TEST(State, RefusesRowsBeyondItsCapacityAndStaysAsItWas) {
  const StateLayout layout = hybrid();
  auto pool = pool_for(layout, 4);
  State state(layout, pool, 300);
  state.begin(299);
  state.commit(299);
  EXPECT_EQ(code_of([&] { state.begin(2); }), ErrorCode::bad_argument);
  EXPECT_EQ(code_of([&] { state.begin(INT64_MAX); }), ErrorCode::bad_argument);
  EXPECT_EQ(state.pending(), 0);
  EXPECT_EQ(state.position(), 299);
  EXPECT_EQ(pool->free_blocks(), 2);
  state.begin(1);
  state.commit(1);
  EXPECT_EQ(state.position(), 300);
}

TEST(State, AnExhaustedPoolLeavesTheStateAsItWas) {
  const StateLayout layout = attention_only();
  auto pool = pool_for(layout, 3);
  State first(layout, pool, 4096), second(layout, pool, 4096);
  first.begin(300);
  first.commit(300);
  second.begin(10);
  second.commit(10);
  EXPECT_EQ(pool->free_blocks(), 0);
  EXPECT_EQ(code_of([&] { second.begin(600); }), ErrorCode::out_of_memory);
  EXPECT_EQ(second.pending(), 0);
  EXPECT_EQ(second.blocks().size(), 1u);
  first.clear();
  EXPECT_EQ(pool->free_blocks(), 2);
  EXPECT_EQ(code_of([&] { second.begin(800); }), ErrorCode::out_of_memory);  // takes two, needs three more
  EXPECT_EQ(pool->free_blocks(), 2);
  second.begin(600);
  second.commit(600);
  EXPECT_EQ(second.position(), 610);
}

TEST(State, GivesItsBlocksBackWhenItEnds) {
  const StateLayout layout = attention_only();
  auto pool = pool_for(layout, 3);
  {
    State state(layout, pool, 4096);
    state.begin(700);
    EXPECT_EQ(pool->free_blocks(), 0);
  }
  EXPECT_EQ(pool->free_blocks(), 3);
}

TEST(State, StatesOfOnePoolNeverShareABlock) {
  const StateLayout layout = attention_only();
  auto pool = pool_for(layout, 8);
  State first(layout, pool, 1024), second(layout, pool, 1024);
  for (int i = 0; i < 4; ++i) {  // growing in turn mixes their blocks in the pool
    for (State* state : {&first, &second}) {
      state->begin(256);
      state->commit(256);
    }
  }
  std::vector<int32_t> all(first.blocks().begin(), first.blocks().end());
  all.insert(all.end(), second.blocks().begin(), second.blocks().end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(State, ClearedEqualsFresh) {
  const StateLayout layout = hybrid();
  auto pool = pool_for(layout, 4);
  State state(layout, pool, 1024, State::Rollback::snapshot);
  EXPECT_TRUE(all_equal(recurrent(layout, state), 0.0f));
  state.begin(500);
  fill_recurrent(layout, state, 9.0f);
  state.commit(500);
  state.begin(20);  // abandoned: clear() ends it
  fill_recurrent(layout, state, 11.0f);
  state.clear();
  EXPECT_TRUE(all_equal(recurrent(layout, state), 0.0f));
  EXPECT_EQ(state.position(), 0);
  EXPECT_EQ(state.pending(), 0);
  EXPECT_EQ(state.kv_bytes(), 0);
  EXPECT_EQ(pool->free_blocks(), 4);
  state.begin(1);  // the old snapshot must not come back
  state.commit(0);
  EXPECT_TRUE(all_equal(recurrent(layout, state), 0.0f));
}

TEST(State, CutsOnlyWhatCanBeCut) {
  const StateLayout layout = attention_only();
  auto pool = pool_for(layout, 4);
  State state(layout, pool, 1024);
  state.begin(700);
  state.commit(700);
  EXPECT_TRUE(state.can_cut_to(700));
  EXPECT_TRUE(state.can_cut_to(0));
  EXPECT_FALSE(state.can_cut_to(701));
  EXPECT_FALSE(state.can_cut_to(-1));
  state.cut_to(257);
  EXPECT_EQ(state.position(), 257);
  EXPECT_EQ(pool->free_blocks(), 2);
  state.cut_to(256);
  EXPECT_EQ(pool->free_blocks(), 3);
  state.cut_to(0);
  EXPECT_EQ(pool->free_blocks(), 4);

  const StateLayout mixed = hybrid();
  State recurrent_state(mixed, pool_for(mixed, 4), 1024);
  recurrent_state.begin(10);
  recurrent_state.commit(10);
  EXPECT_TRUE(recurrent_state.can_cut_to(10));
  EXPECT_FALSE(recurrent_state.can_cut_to(9));
  EXPECT_FALSE(recurrent_state.can_cut_to(0));
  recurrent_state.cut_to(10);
  EXPECT_EQ(code_of([&] { recurrent_state.cut_to(9); }), ErrorCode::internal);
}

TEST(State, ALayoutWithoutAttentionTakesNoBlocks) {
  const StateLayout layout{{}, {{2, 8, 32, 3}}};
  auto pool = pool_for(layout, 0);
  State state(layout, pool, 10'000);
  state.begin(5000);
  state.commit(5000);
  EXPECT_EQ(state.position(), 5000);
  EXPECT_EQ(state.kv_bytes(), 0);
}

TEST(State, AKeptRecurrentPartComesBackWithItsPosition) {
  StateLayout layout;
  layout.attention = {{1, 32, 32}};
  layout.delta = {{2, 4, 24, 3}};
  const auto pool = std::make_shared<KvPool>(layout, 4, DType::f16, DType::f16);
  State state(layout, pool, 1024);
  const auto advance = [&state](int64_t n, float value) {
    state.begin(n);
    state.delta_state(0)[5] = value;
    state.conv_history(0)[7] = -value;
    state.commit(n);
  };
  advance(300, 1);
  EXPECT_FALSE(state.can_cut_to(200));
  EXPECT_EQ(state.kept_bytes(), 0);
  state.keep();
  EXPECT_GT(state.kept_bytes(), 0);
  for (const float value : {2.0f, 3.0f}) {  // as often as wanted
    advance(300, value);
    EXPECT_TRUE(state.can_cut_to(300));
    EXPECT_FALSE(state.can_cut_to(299));
    state.cut_to(300);
    EXPECT_EQ(state.position(), 300);
    EXPECT_EQ(state.blocks().size(), 2u);
    EXPECT_EQ(state.delta_state(0)[5], 1);
    EXPECT_EQ(state.conv_history(0)[7], -1);
  }
  advance(1, 4);
  state.keep();
  advance(1, 5);
  EXPECT_FALSE(state.can_cut_to(300));
  state.cut_to(301);
  EXPECT_EQ(state.delta_state(0)[5], 4);
  state.clear();
  advance(302, 6);
  EXPECT_FALSE(state.can_cut_to(301));
}

}  // namespace
}  // namespace kz
