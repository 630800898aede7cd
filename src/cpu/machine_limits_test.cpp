#include "cpu/machine_limits.h"

#include <gtest/gtest.h>

#include "cpu/kernel_tables.h"

namespace kz {
namespace {

TEST(ReadProbe, EveryLoopReadsEverything) {
  ThreadPool pool(2);
  const ReadProbe probe(pool, 100 << 20);
  EXPECT_EQ(probe.size_bytes(), 128 << 20);  // whole pieces
  const std::vector<ReadRate> rates = probe.measure();
  ASSERT_GE(rates.size(), 3u);
  for (const ReadRate& rate : rates) {
    EXPECT_FALSE(rate.loop.empty());
    EXPECT_GT(rate.rate_bytes_s, 1e6) << rate.loop;   // slower than a floppy disk
    EXPECT_LT(rate.rate_bytes_s, 1e14) << rate.loop;  // faster than any memory: nothing was read
  }
}

TEST(Int8Peaks, EveryInstructionOfThisMachineHasARate) {
  ThreadPool pool(2);
  const std::vector<Int8Rate> rates = measure_int8_peaks(pool);
  size_t n_here = 0;
  for (const PeakEntry& entry : isa_peak_loops()) n_here += entry.runs_here() ? 1 : 0;
  ASSERT_EQ(rates.size(), n_here);
  for (const Int8Rate& rate : rates) {
    EXPECT_GT(rate.rate_mac_s, 1e6) << rate.kernels;
    EXPECT_LT(rate.rate_mac_s, 1e17) << rate.kernels;  // the loop was thrown out
  }
}

TEST(Int8Peaks, TablesKnowTheirInstruction) {
  for (const KernelTable& table : isa_kernel_tables()) {
    const std::string_view peak = int8_peak_of(table.name);
    const StripKernels& used = table.batches != nullptr ? *table.batches : *table.strips;
    EXPECT_TRUE(peak.empty() || peak == used.name) << table.name;
  }
  EXPECT_EQ(int8_peak_of("scalar"), "");
  EXPECT_EQ(int8_peak_of("no such table"), "");
}

TEST(MachineFacts, SayWhatLinuxSays) {
  EXPECT_FALSE(cpu_name().empty());
  EXPECT_EQ(cpu_name().find('\n'), std::string::npos);
  EXPECT_GE(last_cache_bytes(), 0);
  EXPECT_LT(last_cache_bytes(), int64_t{1} << 40);
}

}  // namespace
}  // namespace kz
