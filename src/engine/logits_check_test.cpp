#include "engine/logits_check.h"

#include <gtest/gtest.h>
#include <kazeia/error.h>

#include <limits>
#include <vector>

namespace kz {
namespace {

std::string refusal(const std::vector<float>& logits) {
  try {
    check_logits(logits, "model.gguf", 12);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_file);
    return error.what();
  }
  return "";
}

// Case B157.
TEST(LogitsCheck, NamesWhatIsWrong) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, -nan, infinity, -infinity}) {
    const std::string text = refusal({1, 2, bad, 4});
    EXPECT_NE(text.find("model.gguf: the logit of token 2 at position 12"), std::string::npos) << text;
  }
  EXPECT_NE(refusal({0, 0, 0}).find("all 3 logits at position 12"), std::string::npos);
  EXPECT_NE(refusal({-2.5f, -2.5f}).find("-2.5"), std::string::npos);
}

TEST(LogitsCheck, AcceptsWhatCanBeSampled) {
  EXPECT_EQ(refusal({0, 0, 1e-30f}), "");
  EXPECT_EQ(refusal({std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()}), "");
  EXPECT_EQ(refusal({3}), "");  // one token is no choice, and no fault
}

}  // namespace
}  // namespace kz
