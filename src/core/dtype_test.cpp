#include "core/dtype.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>

#include "core/error.h"

namespace kz {
namespace {

TEST(DType, EveryIdHasOneEntryAndRemovedOnesHaveNone) {
  const std::set<int32_t> absent{4, 5, 31, 32, 33, 36, 37, 38};
  std::set<std::string_view> names;
  for (int32_t id = 0; id < 43; ++id) {
    const DTypeInfo* info = find_dtype(id);
    ASSERT_EQ(info == nullptr, absent.count(id) == 1) << id;
    if (info == nullptr) continue;
    EXPECT_EQ(static_cast<int32_t>(info->dtype), id);
    EXPECT_GT(info->block_elements, 0);
    EXPECT_GT(info->block_bytes, 0);
    EXPECT_TRUE(names.insert(info->name).second) << info->name;
    EXPECT_EQ(&dtype_info(info->dtype), info);
    EXPECT_EQ(dtype_name(info->dtype), info->name);
    EXPECT_EQ(find_dtype(info->name), info);
  }
  for (const int32_t id :
       {-1, 43, 44, 1000, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()}) {
    EXPECT_EQ(find_dtype(id), nullptr) << id;
  }
}

TEST(DType, SizesAreThoseOfTheVectors) {
  std::ifstream table(std::string(KZ_TEST_DATA) + "/blocks/types.tsv");
  ASSERT_TRUE(table.good());
  std::string line;
  std::getline(table, line);
  int lines = 0;
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string name;
    int32_t id = 0, elements = 0, bytes = 0;
    fields >> name >> id >> elements >> bytes;
    const DTypeInfo* info = find_dtype(id);
    ASSERT_NE(info, nullptr) << line;
    EXPECT_EQ(info->name, name);
    EXPECT_EQ(info->block_elements, elements) << name;
    EXPECT_EQ(info->block_bytes, bytes) << name;
    ++lines;
  }
  EXPECT_EQ(lines, 24);
}

TEST(DType, SizesOfTheOthers) {
  EXPECT_EQ(row_bytes(DType::f32, 3), 12);
  EXPECT_EQ(row_bytes(DType::f64, 3), 24);
  EXPECT_EQ(row_bytes(DType::i8, 3), 3);
  EXPECT_EQ(row_bytes(DType::i16, 3), 6);
  EXPECT_EQ(row_bytes(DType::i32, 3), 12);
  EXPECT_EQ(row_bytes(DType::i64, 3), 24);
  EXPECT_EQ(row_bytes(DType::q8_1, 64), 72);
  EXPECT_EQ(row_bytes(DType::q8_k, 256), 292);
  EXPECT_EQ(row_bytes(DType::nvfp4, 64), 36);
  EXPECT_EQ(row_bytes(DType::q1_0, 128), 18);
  EXPECT_EQ(row_bytes(DType::q2_0, 64), 18);
}

TEST(DType, NamesInAnyCase) {
  ASSERT_NE(find_dtype("q4_k"), nullptr);
  EXPECT_EQ(find_dtype("q4_k")->dtype, DType::q4_k);
  EXPECT_EQ(find_dtype("Q4_K"), find_dtype("q4_k"));
  EXPECT_EQ(find_dtype("bF16")->dtype, DType::bf16);
  EXPECT_EQ(find_dtype("Q4_"), nullptr);
  EXPECT_EQ(find_dtype("Q4_00"), nullptr);
  EXPECT_EQ(find_dtype(""), nullptr);
  EXPECT_EQ(find_dtype("unknown"), nullptr);
}

TEST(DType, RowBytesRefusesWhatIsNoWholeNumberOfBlocks) {
  EXPECT_EQ(row_bytes(DType::q4_0, 0), 0);
  EXPECT_EQ(row_bytes(DType::q4_0, 64), 36);
  EXPECT_EQ(row_bytes(DType::q4_k, 512), 288);
  for (const int64_t n : {int64_t{1}, int64_t{31}, int64_t{33}, int64_t{-32}}) {
    try {
      row_bytes(DType::q4_0, n);
      FAIL() << n;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_argument);
      const std::string message = e.what();
      EXPECT_NE(message.find(std::to_string(n)), std::string::npos) << message;
      EXPECT_NE(message.find("multiple of 32 for Q4_0"), std::string::npos) << message;
    }
  }
  EXPECT_THROW(row_bytes(DType::q4_k, 128), Error);
  EXPECT_THROW(row_bytes(DType::f32, std::numeric_limits<int64_t>::max() / 2), Error);  // the product overflows
}

TEST(DType, AValueOutsideTheEnumerationIsHarmless) {
  for (const int32_t id : {-1, 4, 38, 43, 77}) {
    EXPECT_EQ(dtype_name(DType{id}), "unknown");
    EXPECT_EQ(dtype_info(DType{id}).block_elements, 0);
    EXPECT_FALSE(dtype_info(DType{id}).weights);
    EXPECT_THROW(row_bytes(DType{id}, 32), Error);
  }
}

}  // namespace
}  // namespace kz
