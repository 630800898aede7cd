#include "engine/memory_account.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace kz {
namespace {

TEST(CheckFits, NamesWhatIsTooMuch) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  const std::vector<MemoryItem> session = {{"KV", 3 * kGiB, 0}, {"scratch", kGiB, 0}};
  EXPECT_NO_THROW(check_fits(session, 5000, 4 * kGiB));
  EXPECT_NO_THROW(check_fits(session, 5000, 0)) << "a machine that does not tell";
  try {
    check_fits(session, 5000, 4 * kGiB - 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
    EXPECT_EQ(std::string(error.what()),
              "a context of 5000 tokens needs 4096 MiB (KV 3072 MiB, scratch 1024 MiB), but this machine has 4096 MiB: "
              "choose a smaller one (-c)");
  }
}

TEST(CheckFits, SumsBeyondIntegers) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_THROW(check_fits({{"KV", most, 0}, {"scratch", most, 0}}, 1, most), Error);
}

}  // namespace
}  // namespace kz
