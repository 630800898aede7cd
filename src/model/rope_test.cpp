#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kz {
namespace {

RopeSettings settings(int64_t n_rot, double base) {
  RopeSettings s;
  s.n_rot = n_rot;
  s.base = base;
  return s;
}

TEST(Rope, PlainFrequencies) {
  const RopeTable table = make_rope_table(settings(64, 1e7));
  ASSERT_EQ(table.frequency.size(), 32u);
  EXPECT_EQ(table.n_rot(), 64);
  EXPECT_EQ(table.frequency[0], 1.0);
  EXPECT_DOUBLE_EQ(table.frequency[16], 1 / std::sqrt(1e7));
  EXPECT_DOUBLE_EQ(table.frequency[31], std::pow(1e7, -62.0 / 64.0));
  EXPECT_EQ(table.magnitude, 1.0);
  EXPECT_FALSE(table.adjacent);
}

TEST(Rope, LinearScalingDividesEveryPair) {
  RopeSettings s = settings(8, 10000);
  s.scaling = RopeScaling::linear;
  s.factor = 4;
  s.attention_factor = 1.5;
  const RopeTable table = make_rope_table(s);
  EXPECT_DOUBLE_EQ(table.frequency[0], 0.25);
  EXPECT_DOUBLE_EQ(table.frequency[2], 0.0025);
  EXPECT_EQ(table.magnitude, 1.5);
}

TEST(Rope, DivisorsApplyPairByPair) {
  RopeSettings s = settings(4, 100);
  s.divisors = {1.0, 8.0};
  const RopeTable table = make_rope_table(s);
  EXPECT_DOUBLE_EQ(table.frequency[0], 1.0);
  EXPECT_DOUBLE_EQ(table.frequency[1], 0.1 / 8);
}

// Numbers of the published formula, worked out apart from this program.
TEST(Rope, YarnOfAShortContext) {
  RopeSettings s = settings(64, 1e6);
  s.scaling = RopeScaling::yarn;
  s.factor = 4;
  s.n_ctx_original = 32;
  const RopeTable table = make_rope_table(s);
  EXPECT_DOUBLE_EQ(table.frequency[0], 1.0);
  EXPECT_DOUBLE_EQ(table.frequency[1], 0.5276225756556717);
  EXPECT_DOUBLE_EQ(table.frequency[2], 0.2635603146428639);
  EXPECT_DOUBLE_EQ(table.frequency[3], 0.1198058589990658);
  EXPECT_DOUBLE_EQ(table.frequency[4], 0.04445698525097307);
  EXPECT_DOUBLE_EQ(table.frequency[31], 3.84981631514873e-07);
  EXPECT_DOUBLE_EQ(table.magnitude, 1.138629436111989);
}

TEST(Rope, YarnOfQwen3) {
  RopeSettings s = settings(128, 1e6);
  s.scaling = RopeScaling::yarn;
  s.factor = 4;
  s.n_ctx_original = 32768;
  const RopeTable table = make_rope_table(s);
  EXPECT_DOUBLE_EQ(table.frequency[20], 0.01333521432163324);
  EXPECT_DOUBLE_EQ(table.frequency[23], 0.006978305848598663);
  EXPECT_DOUBLE_EQ(table.frequency[30], 0.001064360981247002);
  EXPECT_DOUBLE_EQ(table.frequency[39], 6.490394320837029e-05);
  EXPECT_DOUBLE_EQ(table.frequency[50], 5.133812566142866e-06);
}

TEST(Rope, YarnWithoutExtensionIsPlain) {
  RopeSettings s = settings(64, 1e6);
  s.scaling = RopeScaling::yarn;
  s.n_ctx_original = 32;
  const RopeTable table = make_rope_table(s);
  EXPECT_EQ(table.frequency, make_rope_table(settings(64, 1e6)).frequency);
  EXPECT_EQ(table.magnitude, 1.0);
}

}  // namespace
}  // namespace kz
