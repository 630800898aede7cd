#include "apps/cli/cores.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace kz::cli {
namespace {

using Cores = std::vector<int>;

TEST(Cores, MasksNameABitPerCore) {
  EXPECT_EQ(parse_core_mask("-C", "0xfc"), (Cores{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(parse_core_mask("-C", "1"), Cores{0});
  EXPECT_EQ(parse_core_mask("-C", "A0000000000000001"), (Cores{0, 65, 67}));
  for (const char* bad : {"", "0x", "0", "0xg", "-1", "1 ", "3-5"}) {
    EXPECT_THROW(parse_core_mask("-C", bad), CLI::ValidationError) << bad;
  }
  EXPECT_THROW(parse_core_mask("-C", std::string(100000, 'f')), CLI::ValidationError);
}

TEST(Cores, RangesHoldBothEnds) {
  EXPECT_EQ(parse_core_range("-Cr", "2-5"), (Cores{2, 3, 4, 5}));
  EXPECT_EQ(parse_core_range("-Cr", "3"), Cores{3});
  for (const char* bad : {"", "-", "5-2", "1-", "-3", "a-b", "0-99999", "1-2-3"}) {
    EXPECT_THROW(parse_core_range("-Cr", bad), CLI::ValidationError) << bad;
  }
}

}  // namespace
}  // namespace kz::cli
