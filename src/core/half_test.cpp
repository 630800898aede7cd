#include "core/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace kz {
namespace {

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }

/// The value of a binary16 by its definition, in double.
double value_of_f16(uint16_t h) {
  const int exponent = (h >> 10) & 31;
  const int fraction = h & 1023;
  const double sign = h & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(F16, EveryValueDecodesExactly) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint16_t h = static_cast<uint16_t>(i);
    const float x = f16_to_f32(h);
    const double expected = value_of_f16(h);
    if (std::isnan(expected)) {
      ASSERT_EQ(bits_of(x), (i & 0x8000u) << 16 | 0x7f800000u | (i & 0x3ffu) << 13) << i;
      continue;
    }
    ASSERT_EQ(static_cast<double>(x), expected) << i;
    ASSERT_EQ(std::signbit(x), (h & 0x8000) != 0) << i;
  }
}

TEST(F16, EveryValueRoundTrips) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint16_t h = static_cast<uint16_t>(i);
    const bool nan = (h & 0x7fff) > 0x7c00;
    ASSERT_EQ(f32_to_f16(f16_to_f32(h)), nan ? h | 0x200 : h) << i;  // a NaN comes back quiet
  }
}

TEST(F16, RoundsToNearestEvenEverywhere) {
  // Between each pair of neighbours: just below, at and just above the middle.
  for (uint16_t h = 0; h < 0x7bff; ++h) {
    const uint16_t next = static_cast<uint16_t>(h + 1);
    const float middle = (f16_to_f32(h) + f16_to_f32(next)) / 2.0f;  // exact in float32
    const float below = std::nextafter(middle, 0.0f);
    const float above = std::nextafter(middle, 1e9f);
    const uint16_t even = h % 2 == 0 ? h : next;
    ASSERT_EQ(f32_to_f16(below), h);
    ASSERT_EQ(f32_to_f16(middle), even);
    ASSERT_EQ(f32_to_f16(above), next);
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000);
  }
}

TEST(F16, OverflowAndUnderflow) {
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_EQ(f32_to_f16(0x1p-25f), 0);  // the middle between 0 and the smallest denormal: even is 0
  EXPECT_EQ(f32_to_f16(std::nextafter(0x1p-25f, 1.0f)), 1);
  EXPECT_EQ(f32_to_f16(-1e-45f), 0x8000);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::quiet_NaN()) & 0x7e00, 0x7e00);
}

TEST(Bf16, EveryValueRoundTrips) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint16_t h = static_cast<uint16_t>(i);
    const float x = bf16_to_f32(h);
    ASSERT_EQ(bits_of(x), i << 16);
    ASSERT_EQ(f32_to_bf16(x), std::isnan(x) ? h | 0x40 : h) << i;
  }
}

TEST(Bf16, RoundsToNearestEvenEverywhere) {
  for (uint32_t h = 0; h < 0x7f80; ++h) {  // the last step is from the largest finite value to infinity
    const uint32_t middle = h << 16 | 0x8000u;
    const uint32_t even = h % 2 == 0 ? h : h + 1;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle - 1)), h);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle)), even);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle + 1)), h + 1);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle | 0x80000000u)), even | 0x8000u);
  }
}

TEST(Bf16, NanIsKeptQuietEvenWhenItsPayloadIsCut) {
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7f800001u)), 0x7fc0);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0xffffffffu)), 0xffff);
}

}  // namespace
}  // namespace kz
