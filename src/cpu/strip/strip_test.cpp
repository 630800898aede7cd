#include "cpu/strip/strip.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace kz {
namespace {

constexpr DType kTypes[] = {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1,   DType::q8_0, DType::q4_k,
                            DType::q5_k, DType::q6_k, DType::f16,  DType::iq4_nl, DType::bf16};

std::vector<std::byte> random_bytes(int64_t n, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<std::byte> bytes(static_cast<size_t>(n));
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng());
  return bytes;
}

class StripTest : public testing::TestWithParam<DType> {};

TEST_P(StripTest, HoldsExactlyTheBytesOfTheFile) {
  const DType type = GetParam();
  const int64_t block = dtype_info(type).block_elements;
  for (const int64_t n : {1, 2, 3, 10}) {
    const int64_t cols = n * block;
    EXPECT_EQ(strip_layout(type, cols).size_bytes(), kStripRows * row_bytes(type, cols)) << dtype_name(type) << cols;
    EXPECT_EQ(strip_layout(type, cols).stride_bytes() % 128, 0);
  }
}

TEST_P(StripTest, GivesBackTheRowsByteForByte) {
  const DType type = GetParam();
  const int64_t block = dtype_info(type).block_elements;
  for (const int64_t n_blocks : {1, 2, 3, 5}) {
    for (const int64_t n_rows : {1, 2, 31, 32}) {
      const int64_t cols = n_blocks * block;
      const std::vector<std::byte> rows = random_bytes(n_rows * row_bytes(type, cols), 7);
      std::vector<std::byte> strip(static_cast<size_t>(strip_layout(type, cols).stride_bytes()), std::byte{0xaa});
      pack_strip(type, rows.data(), n_rows, cols, strip.data());
      std::vector<std::byte> back(rows.size(), std::byte{0x55});
      for (int64_t c = 0; c < n_rows; ++c) {
        unpack_strip_row(type, strip.data(), c, cols, back.data() + c * row_bytes(type, cols));
      }
      EXPECT_EQ(rows, back) << dtype_name(type) << " " << n_rows << " x " << cols;
    }
  }
}

TEST_P(StripTest, MissingRowsAreZeroBlocks) {
  const DType type = GetParam();
  const int64_t cols = 2 * dtype_info(type).block_elements;
  const std::vector<std::byte> rows = random_bytes(3 * row_bytes(type, cols), 9);
  std::vector<std::byte> strip(static_cast<size_t>(strip_layout(type, cols).stride_bytes()), std::byte{0xaa});
  pack_strip(type, rows.data(), 3, cols, strip.data());
  std::vector<std::byte> all(static_cast<size_t>(kStripRows * row_bytes(type, cols)), std::byte{0xff});
  for (int64_t c = 0; c < kStripRows; ++c) {
    unpack_strip_row(type, strip.data(), c, cols, all.data() + c * row_bytes(type, cols));
  }
  for (size_t i = rows.size(); i < all.size(); ++i) ASSERT_EQ(all[i], std::byte{0}) << i;
}

INSTANTIATE_TEST_SUITE_P(Types, StripTest, testing::ValuesIn(kTypes),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

// The byte order that the NPU and the CPU kernels rely on, written out once more from its definition.
TEST(StripOrder, FourBitCodes) {
  const int64_t cols = 64;
  std::vector<std::byte> rows = random_bytes(32 * row_bytes(DType::q4_0, cols), 3);
  std::vector<std::byte> strip(static_cast<size_t>(strip_layout(DType::q4_0, cols).stride_bytes()));
  pack_strip(DType::q4_0, rows.data(), 32, cols, strip.data());
  const int order[4] = {0, 2, 1, 3};
  for (int64_t c = 0; c < 32; ++c) {
    for (int64_t k = 0; k < cols; ++k) {
      const int64_t in_block = k % 32;
      const auto* block = reinterpret_cast<const uint8_t*>(rows.data()) + 18 * (2 * c + k / 32);
      const int expected = in_block < 16 ? block[2 + in_block] & 15 : block[2 + in_block - 16] >> 4;
      const auto byte =
          static_cast<int>(strip[static_cast<size_t>(512 * (k / 32) + 128 * (in_block / 8) + 4 * c + order[k % 4])]);
      ASSERT_EQ(in_block % 8 < 4 ? byte & 15 : byte >> 4, expected) << "k " << k << " column " << c;
    }
  }
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t c = 0; c < 32; ++c) {
      const size_t at = static_cast<size_t>(2 * 512 + 64 * b + 2 * c);
      EXPECT_EQ(strip[at], rows[static_cast<size_t>(18 * (2 * c + b))]);
      EXPECT_EQ(strip[at + 1], rows[static_cast<size_t>(18 * (2 * c + b) + 1)]);
    }
  }
}

TEST(StripOrder, HalvesLieInPairsOfInputs) {
  const int64_t cols = 6;
  std::vector<std::byte> rows = random_bytes(32 * 2 * cols, 4);
  std::vector<std::byte> strip(static_cast<size_t>(strip_layout(DType::f16, cols).stride_bytes()));
  pack_strip(DType::f16, rows.data(), 32, cols, strip.data());
  for (int64_t c = 0; c < 32; ++c) {
    for (int64_t k = 0; k < cols; ++k) {
      EXPECT_EQ(strip[static_cast<size_t>(128 * (k / 2) + 4 * c + 2 * (k % 2))],
                rows[static_cast<size_t>(2 * (cols * c + k))]);
    }
  }
}

}  // namespace
}  // namespace kz
