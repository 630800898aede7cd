#include "core/error.h"

#include <gtest/gtest.h>

#include <string>

namespace kz {
namespace {

TEST(Error, CarriesCodeAndText) {
  const Error e(ErrorCode::bad_file, "file x: wrong");
  EXPECT_EQ(e.code(), ErrorCode::bad_file);
  EXPECT_STREQ(e.what(), "file x: wrong");
}

TEST(Check, NamesThePlaceAndTheCondition) {
  EXPECT_NO_THROW(KZ_CHECK(1 + 1 == 2));
  try {
    KZ_CHECK(1 + 1 == 3);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::internal);
    const std::string message = e.what();
    EXPECT_NE(message.find("error_test.cpp:"), std::string::npos) << message;
    EXPECT_NE(message.find("1 + 1 == 3"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace kz
