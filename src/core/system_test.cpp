#include "core/system.h"

#include <gtest/gtest.h>

namespace kz {
namespace {

const std::string kText =
    "processor\t: 0\nmodel name\t: Some CPU: fast\nmodel\t\t: 7\n\nMemTotal:  2048 kB\nEmpty:\nHuge: "
    "99999999999999999999 kB\n"
    "Bad: -3 kB\nno colon here\n: nameless\nLast: 5 kB";

TEST(System, ValuesAreFoundByTheirWholeName) {
  EXPECT_EQ(system_value(kText, "processor"), "0");
  EXPECT_EQ(system_value(kText, "model name"), "Some CPU: fast");
  EXPECT_EQ(system_value(kText, "model"), "7");
  EXPECT_EQ(system_value(kText, "Empty"), "");
  EXPECT_EQ(system_value(kText, "odel"), "");
  EXPECT_EQ(system_value(kText, "no colon here"), "");
  EXPECT_EQ(system_value("", "model"), "");
}

TEST(System, KilobytesBecomeBytes) {
  EXPECT_EQ(system_bytes(kText, "MemTotal"), 2048 * 1024);
  EXPECT_EQ(system_bytes(kText, "Last"), 5 * 1024);
  for (const char* name : {"Empty", "Huge", "Bad", "model name", "absent"})
    EXPECT_EQ(system_bytes(kText, name), 0) << name;
}

TEST(System, TellsOfThisMachine) {
  EXPECT_EQ(system_text("/proc/no-such-file"), "");
  EXPECT_NE(system_text("/proc/self/status"), "");
  EXPECT_GT(machine_memory_bytes(), int64_t{1} << 20);
  EXPECT_GT(available_memory_bytes(), 0);
  EXPECT_LE(available_memory_bytes(), machine_memory_bytes());
}

}  // namespace
}  // namespace kz
