#include "core/blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/half.h"

namespace kz {
namespace {

constexpr int64_t kVectorRows = 6;
constexpr int64_t kVectorCols = 512;

std::vector<std::byte> read_bytes(const std::string& file) {
  const std::string path = std::string(KZ_TEST_DATA) + "/blocks/" + file;
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  const std::vector<char> chars((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::vector<std::byte> bytes(chars.size());
  if (!chars.empty()) std::memcpy(bytes.data(), chars.data(), chars.size());
  return bytes;
}

std::vector<float> read_floats(const std::string& file) {
  const std::vector<std::byte> bytes = read_bytes(file);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

std::vector<std::byte> quantised(DType dtype, const std::vector<float>& x) {
  const int64_t n = static_cast<int64_t>(x.size());
  std::vector<std::byte> out(static_cast<size_t>(row_bytes(dtype, n)));
  quantise_row(dtype, x.data(), out.data(), n);
  return out;
}

std::vector<float> dequantised(DType dtype, const std::vector<std::byte>& blocks) {
  const DTypeInfo& info = dtype_info(dtype);
  const int64_t n = static_cast<int64_t>(blocks.size()) / info.block_bytes * info.block_elements;
  std::vector<float> out(static_cast<size_t>(n));
  dequantise_row(dtype, blocks.data(), out.data(), n);
  return out;
}

std::string message_of(const std::function<void()>& action, ErrorCode expected) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), expected) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }

std::string type_name(const testing::TestParamInfo<DType>& info) { return std::string(dtype_name(info.param)); }

// --- Measured vectors ---

class ReadableType : public testing::TestWithParam<DType> {};

TEST_P(ReadableType, DequantisesTheVectorsBitForBit) {
  const std::string name(dtype_name(GetParam()));
  const std::vector<std::byte> blocks = read_bytes(name + ".quantised.bin");
  const std::vector<float> expected = read_floats(name + ".f32");
  ASSERT_EQ(expected.size(), static_cast<size_t>(kVectorRows * kVectorCols));
  const std::vector<float> got = dequantised(GetParam(), blocks);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(bits_of(got[i]), bits_of(expected[i])) << i << ": " << got[i] << " " << expected[i];
  }
}

TEST_P(ReadableType, AnyBlockBoundaryMayStartTheRow) {
  const std::string name(dtype_name(GetParam()));
  const DTypeInfo& info = dtype_info(GetParam());
  const std::vector<std::byte> blocks = read_bytes(name + ".quantised.bin");
  const std::vector<float> whole = dequantised(GetParam(), blocks);
  const int64_t count = static_cast<int64_t>(blocks.size()) / info.block_bytes;
  for (int64_t b = 0; b < count; ++b) {
    std::vector<std::byte> moved(static_cast<size_t>(info.block_bytes) + 1);  // an odd address
    std::memcpy(moved.data() + 1, blocks.data() + b * info.block_bytes, static_cast<size_t>(info.block_bytes));
    std::vector<float> one(static_cast<size_t>(info.block_elements));
    dequantise_row(GetParam(), moved.data() + 1, one.data(), info.block_elements);
    ASSERT_EQ(std::memcmp(one.data(), whole.data() + b * info.block_elements, one.size() * sizeof(float)), 0);
  }
}

TEST_P(ReadableType, AnyBytesDecode) {
  std::mt19937 random(7);
  const DTypeInfo& info = dtype_info(GetParam());
  std::vector<std::byte> bytes(static_cast<size_t>(info.block_bytes) * 64);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random() & 255u);
  EXPECT_EQ(dequantised(GetParam(), bytes).size(), static_cast<size_t>(info.block_elements) * 64);
}

INSTANTIATE_TEST_SUITE_P(Blocks, ReadableType,
                         testing::Values(DType::f16, DType::bf16, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1,
                                         DType::q8_0, DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k,
                                         DType::iq4_nl, DType::iq4_xs, DType::mxfp4),
                         type_name);

class WritableType : public testing::TestWithParam<DType> {};

TEST_P(WritableType, QuantisesTheVectorsByteForByte) {
  const std::string name(dtype_name(GetParam()));
  const std::vector<float> input = read_floats("input.f32");
  ASSERT_EQ(input.size(), static_cast<size_t>(kVectorRows * kVectorCols));
  const std::vector<std::byte> expected = read_bytes(name + ".quantised.bin");
  const std::vector<std::byte> got = quantised(GetParam(), input);
  ASSERT_EQ(got.size(), expected.size());
  const size_t block = static_cast<size_t>(dtype_info(GetParam()).block_bytes);
  size_t different = 0;
  for (size_t at = 0; at < got.size(); at += block) {
    different += std::memcmp(got.data() + at, expected.data() + at, block) != 0;
  }
  EXPECT_EQ(different, 0u) << "of " << got.size() / block << " blocks";
}

TEST_P(WritableType, ZerosStayZeros) {
  const std::vector<float> zeros(512, 0.0f);
  for (const float x : dequantised(GetParam(), quantised(GetParam(), zeros))) ASSERT_EQ(x, 0.0f);
}

TEST_P(WritableType, DenormalsDoNotTurnIntoLargeOrNonFiniteValues) {
  for (const float size : {1e-45f, 1e-40f, 1e-38f, 1e-36f, 1e-20f, 1e-9f}) {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    std::vector<float> x(512);
    for (float& v : x) v = size * uniform(random);
    for (const float y : dequantised(GetParam(), quantised(GetParam(), x))) {
      ASSERT_LE(std::fabs(y), 2.0f * size) << size;
    }
  }
}

TEST_P(WritableType, ConstantAndTiedBlocks) {
  for (const float value : {1.0f, -1.0f, 0.37f, -250.0f}) {
    const std::vector<float> constant(256, value);
    for (const float y : dequantised(GetParam(), quantised(GetParam(), constant))) {
      ASSERT_NEAR(y, value, std::fabs(value) * 0.01f);
    }
    std::vector<float> tied(256);  // the two extremes are equal in magnitude
    for (size_t i = 0; i < tied.size(); ++i) tied[i] = i % 2 == 0 ? value : -value;
    const std::vector<float> y = dequantised(GetParam(), quantised(GetParam(), tied));
    for (size_t i = 0; i < tied.size(); ++i) ASSERT_NEAR(y[i], tied[i], std::fabs(value) * 0.13f);
  }
}

TEST_P(WritableType, OneHugeValueAmongSmallOnes) {
  std::vector<float> x(512);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * static_cast<float>(static_cast<int>(i % 7) - 3);
  x[300] = 30000.0f;
  const std::vector<float> y = dequantised(GetParam(), quantised(GetParam(), x));
  EXPECT_NEAR(y[300], 30000.0f, 300.0f);
  for (size_t i = 0; i < 256; ++i) ASSERT_NEAR(y[i], x[i], 0.005f) << i;  // other blocks do not notice
}

TEST_P(WritableType, NonFiniteValuesAreRefusedByColumn) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {inf, -inf, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x(512, 0.5f);
    x[259] = bad;
    const std::string message = message_of([&] { quantised(GetParam(), x); }, ErrorCode::bad_argument);
    EXPECT_NE(message.find("non-finite value at column 259"), std::string::npos) << message;
  }
}

TEST_P(WritableType, ValuesThatOverflowAreRefusedByColumn) {
  std::vector<float> x(512, 0.5f);
  x[259] = 3.4e38f;
  x[257] = 1.0f;
  if (GetParam() == DType::f32) {
    EXPECT_EQ(dequantised(GetParam(), quantised(GetParam(), x)), x);
    return;
  }
  if (GetParam() == DType::bf16) x[259] = std::numeric_limits<float>::max();
  for (const float sign : {1.0f, -1.0f}) {
    x[259] *= sign;
    const std::string message = message_of([&] { quantised(GetParam(), x); }, ErrorCode::bad_argument);
    EXPECT_NE(message.find("at column 259"), std::string::npos) << message;
    EXPECT_NE(message.find("too large for " + std::string(dtype_name(GetParam()))), std::string::npos) << message;
  }
}

TEST_P(WritableType, NeverWritesAnInfiniteScale) {
  // Every size is either written finitely or refused; the largest that passes comes back nearly unchanged.
  bool refused = false;
  for (float size = 1.0f; size < 1e30f; size *= 1.7f) {
    std::vector<float> x(256, 0.0f);
    for (size_t i = 0; i < x.size(); ++i) x[i] = size * std::sin(static_cast<float>(i));
    try {
      for (const float y : dequantised(GetParam(), quantised(GetParam(), x))) ASSERT_TRUE(std::isfinite(y)) << size;
      ASSERT_FALSE(refused) << "refused below " << size;
    } catch (const Error& e) {
      ASSERT_EQ(e.code(), ErrorCode::bad_argument);
      ASSERT_GE(size, 60000.0f);
      refused = true;
    }
  }
  EXPECT_EQ(refused, GetParam() != DType::f32 && GetParam() != DType::bf16);
}

TEST_P(WritableType, PartsOfARowEqualTheWhole) {
  const std::vector<float> input = read_floats("input.f32");
  const std::vector<std::byte> whole = quantised(GetParam(), input);
  std::vector<std::byte> parts;
  for (size_t at = 0; at < input.size(); at += 256) {
    const std::vector<float> part(input.begin() + static_cast<ptrdiff_t>(at),
                                  input.begin() + static_cast<ptrdiff_t>(at) + 256);
    const std::vector<std::byte> bytes = quantised(GetParam(), part);
    parts.insert(parts.end(), bytes.begin(), bytes.end());
  }
  EXPECT_EQ(parts, whole);
}

INSTANTIATE_TEST_SUITE_P(Blocks, WritableType,
                         testing::Values(DType::f16, DType::bf16, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1,
                                         DType::q8_0, DType::q4_k, DType::q5_k, DType::q6_k),
                         type_name);

TEST(F32Blocks, AreCopied) {
  std::vector<float> x(32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::ldexp(1.1f, static_cast<int>(i * 8) - 128);
  EXPECT_EQ(dequantised(DType::f32, quantised(DType::f32, x)), x);
  const auto nothing = [] {
    dequantise_row(DType::f32, nullptr, nullptr, 0);
    quantise_row(DType::f32, nullptr, nullptr, 0);
  };
  EXPECT_NO_THROW(nothing());
}

// --- Error bounds on other inputs ---

struct ErrorBound {
  DType dtype;
  float steps;  ///< largest error as a share of the block's largest magnitude
};

class RoundTrip : public testing::TestWithParam<ErrorBound> {};

TEST_P(RoundTrip, StaysWithinTheStepOfTheType) {
  const ErrorBound bound = GetParam();
  const size_t block = static_cast<size_t>(dtype_info(bound.dtype).block_elements);
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0.0f, 0.02f);
  std::vector<float> x(256 * 256);
  for (float& v : x) v = normal(random);
  const std::vector<float> y = dequantised(bound.dtype, quantised(bound.dtype, x));
  for (size_t at = 0; at < x.size(); at += block) {
    float most = 0.0f;
    for (size_t i = at; i < at + block; ++i) most = std::max(most, std::fabs(x[i]));
    const float allowed = std::max(bound.steps * most, 0x1p-25f);  // the second: half a step of fp16 denormals
    for (size_t i = at; i < at + block; ++i) ASSERT_LE(std::fabs(y[i] - x[i]), allowed) << i;
  }
}

// IQ4_NL: the fit may clip the largest value by about what a code is wide.
// Q4_0: codes -8..7 of most/8: the far end clips one whole step; Q5_0 likewise with 16. Q4_1, Q5_1: half of
// 2*most/15 and 2*most/31. Q8_0: half of most/127. The K types bound half a step plus the rounding of 6-bit scales
// and minima, over ranges that are at most 2*most. A hundredth on top covers the fp16 scale.
INSTANTIATE_TEST_SUITE_P(Blocks, RoundTrip,
                         testing::Values(ErrorBound{DType::q4_0, 0.126f}, ErrorBound{DType::q4_1, 0.068f},
                                         ErrorBound{DType::q5_0, 0.0635f}, ErrorBound{DType::q5_1, 0.033f},
                                         ErrorBound{DType::q8_0, 0.00440f}, ErrorBound{DType::iq4_nl, 0.15f},
                                         ErrorBound{DType::q4_k, 0.15f}, ErrorBound{DType::q5_k, 0.08f},
                                         ErrorBound{DType::q6_k, 0.04f}, ErrorBound{DType::f16, 0x1p-11f},
                                         ErrorBound{DType::bf16, 0x1p-8f}),
                         [](const auto& p) { return std::string(dtype_name(p.param.dtype)); });

// --- Rules, one block worked by hand ---

TEST(Q4_0Block, FirstOfTwoEqualExtremesGivesTheSign) {
  std::vector<float> x(32, 0.0f);
  x[3] = -4.0f;
  x[20] = 4.0f;
  std::vector<std::byte> b = quantised(DType::q4_0, x);
  EXPECT_EQ(static_cast<uint8_t>(b[0]) | static_cast<uint8_t>(b[1]) << 8, f32_to_f16(0.5f));  // -4 / -8
  EXPECT_EQ(b[2 + 3], std::byte{0x80});  // element 3: code 0; element 19: zero, code 8
  EXPECT_EQ(b[2 + 4], std::byte{0xf8});  // element 20: 16 is cut to 15
  std::swap(x[3], x[20]);
  b = quantised(DType::q4_0, x);
  EXPECT_EQ(static_cast<uint8_t>(b[0]) | static_cast<uint8_t>(b[1]) << 8, f32_to_f16(-0.5f));
}

TEST(Iq4NlBlock, ValuesOfTheTableComeBack) {
  constexpr float kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  for (const float d : {0.5f, -0.25f}) {
    std::vector<float> x(32);
    for (size_t i = 0; i < x.size(); ++i) x[i] = d * kValues[(i * 7) % 16];
    EXPECT_EQ(dequantised(DType::iq4_nl, quantised(DType::iq4_nl, x)), x);
  }
  // Without -127 the other end of the table is the one that fits.
  std::vector<float> x(32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = kValues[8 + i % 8];
  EXPECT_EQ(dequantised(DType::iq4_nl, quantised(DType::iq4_nl, x)), x);
  EXPECT_EQ(dequantised(DType::iq4_nl, quantised(DType::iq4_nl, std::vector<float>(32))), std::vector<float>(32));
}

TEST(Iq4NlBlock, ScalesThatAreTooLargeAreRefused) {
  std::vector<float> x(32, 0.0f);
  x[1] = 9e8f;
  x[2] = -9e8f;
  const std::string message = message_of([&] { quantised(DType::iq4_nl, x); }, ErrorCode::bad_argument);
  EXPECT_NE(message.find("at column 1"), std::string::npos) << message;
}

TEST(Q8_0Block, RoundsHalfAwayFromZero) {
  std::vector<float> x(32, 0.0f);
  x[0] = 127.0f;  // d = 1
  x[1] = 2.5f;
  x[2] = -2.5f;
  x[3] = 0.5f;
  x[4] = std::nextafter(0.5f, 0.0f);  // 0 although the sum with 0.5 rounds to 1
  x[5] = -0.5f;
  const std::vector<std::byte> b = quantised(DType::q8_0, x);
  EXPECT_EQ(static_cast<int8_t>(b[2]), 127);
  EXPECT_EQ(static_cast<int8_t>(b[3]), 3);
  EXPECT_EQ(static_cast<int8_t>(b[4]), -3);
  EXPECT_EQ(static_cast<int8_t>(b[5]), 1);
  EXPECT_EQ(static_cast<int8_t>(b[6]), 0);
  EXPECT_EQ(static_cast<int8_t>(b[7]), -1);
}

TEST(Q8_0Block, CodesUseTheUnroundedScale) {
  std::vector<float> x(32, 0.0f);
  x[0] = 1.0f;  // d = 1/127, which fp16 rounds
  x[1] = -1.0f;
  const std::vector<std::byte> b = quantised(DType::q8_0, x);
  EXPECT_EQ(static_cast<int8_t>(b[2]), 127);
  EXPECT_EQ(static_cast<int8_t>(b[3]), -127);
}

TEST(Mxfp4Block, SmallestExponentsAreDenormals) {
  std::vector<std::byte> b(17, std::byte{0x11});  // code 1: half of 2, i.e. doubled value 1
  std::vector<float> y(32);
  const std::pair<int, float> cases[] = {{0, 0x1p-128f}, {1, 0x1p-127f}, {2, 0x1p-126f}, {128, 1.0f}, {255, 0x1p127f}};
  for (const auto& [exponent, value] : cases) {
    b[0] = static_cast<std::byte>(exponent);
    dequantise_row(DType::mxfp4, b.data(), y.data(), 32);
    EXPECT_EQ(y[0], value) << exponent;
    EXPECT_EQ(y[31], value) << exponent;
  }
}

// --- Refusals ---

TEST(Blocks, TypesThatCannotBeReadAreNamed) {
  const std::vector<std::byte> bytes(4096);
  std::vector<float> out(256);
  int refused = 0;
  for (int32_t id = 0; id < 64; ++id) {
    const DTypeInfo* info = find_dtype(id);
    if (info == nullptr || info->weights) continue;
    const std::string message =
        message_of([&] { dequantise_row(info->dtype, bytes.data(), out.data(), 256); }, ErrorCode::unsupported);
    EXPECT_EQ(message.rfind("unsupported block type " + std::string(info->name) + ":", 0), 0u) << message;
    ++refused;
  }
  EXPECT_EQ(refused, 19);
  message_of([&] { dequantise_row(DType{77}, bytes.data(), out.data(), 256); }, ErrorCode::unsupported);
}

TEST(Blocks, WeightsFlagMeansDequantiseWorks) {
  const std::vector<std::byte> bytes(4096);
  std::vector<float> out(256);
  for (int32_t id = 0; id < 64; ++id) {
    const DTypeInfo* info = find_dtype(id);
    if (info == nullptr || !info->weights) continue;
    EXPECT_NO_THROW(dequantise_row(info->dtype, bytes.data(), out.data(), 256)) << info->name;
  }
}

TEST(Blocks, TypesThatCannotBeWrittenAreNamed) {
  const std::vector<float> x(256, 1.0f);
  std::vector<std::byte> out(4096);
  for (const DType dtype : {DType::q2_k, DType::q3_k, DType::iq4_xs, DType::mxfp4, DType::iq2_xxs, DType::q8_k}) {
    EXPECT_FALSE(can_quantise(dtype));
    const std::string message =
        message_of([&] { quantise_row(dtype, x.data(), out.data(), 256); }, ErrorCode::unsupported);
    EXPECT_NE(message.find(dtype_name(dtype)), std::string::npos) << message;
  }
  EXPECT_FALSE(can_quantise(DType{77}));
  EXPECT_TRUE(can_quantise(DType::q4_0));
}

TEST(Blocks, PartOfABlockIsRefused) {
  const std::vector<std::byte> bytes(4096);
  std::vector<float> out(256);
  EXPECT_THROW(dequantise_row(DType::q4_0, bytes.data(), out.data(), 31), Error);
  EXPECT_THROW(dequantise_row(DType::q4_k, bytes.data(), out.data(), 128), Error);
  std::vector<std::byte> to(4096);
  EXPECT_THROW(quantise_row(DType::q4_0, out.data(), to.data(), 33), Error);
}

}  // namespace
}  // namespace kz
