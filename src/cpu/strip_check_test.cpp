// The self-test finds a product that is wrong in one place.
#include "cpu/strip_check.h"

#include <gtest/gtest.h>

#include "cpu/kernel_tables.h"

namespace kz {

extern const StripKernels kStripsScalar;

namespace {

TEST(StripSelfTest, AcceptsEveryTableThatRunsHere) {
  EXPECT_TRUE(equals_scalar(kStripsScalar));
  for (const KernelTable& table : isa_kernel_tables()) {
    if (!table.runs_here()) continue;
    EXPECT_TRUE(equals_scalar(*table.strips)) << table.name;
    if (table.batches != nullptr) {
      EXPECT_TRUE(equals_scalar(*table.batches)) << table.name;
    }
  }
}

TEST(StripSelfTest, FindsOneWrongBit) {
  StripKernels wrong = kStripsScalar;
  wrong.product = [](const StripProductArgs& args) {
    kStripsScalar.product(args);
    float& last = args.out[(args.n_rows - 1) * args.out_stride + 31];
    last = -last;
  };
  EXPECT_FALSE(equals_scalar(wrong));
}

}  // namespace
}  // namespace kz
