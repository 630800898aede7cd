#include "text/string_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace kz::text {
namespace {

TEST(StringTable, KnowsWhatItWasGiven) {
  StringTable table;
  EXPECT_EQ(table.find("x"), -1);
  std::map<std::string, int32_t> first;
  std::mt19937 random(1);
  for (int32_t i = 0; i < 5000; ++i) {
    std::string s(random() % 20, 'a');
    for (char& c : s) c = static_cast<char>(random() % 3);
    EXPECT_EQ(table.add(s), i);
    if (!s.empty()) first.emplace(s, i);
  }
  EXPECT_EQ(table.size(), 5000);
  for (const auto& [s, i] : first) {
    EXPECT_EQ(table.find(s), i);
    EXPECT_EQ(table[i], s);
  }
  EXPECT_EQ(table.find(""), -1);
  EXPECT_EQ(table.find("no"), -1);
  EXPECT_EQ(table.intern("no"), 5000);
  EXPECT_EQ(table.intern("no"), 5000);
}

TEST(StringTable, StaysSmall) {
  StringTable table;
  constexpr int32_t kStrings = 100000;
  size_t n_bytes = 0;
  for (int32_t i = 0; i < kStrings; ++i) n_bytes += std::to_string(i).size();
  table.reserve(kStrings, n_bytes);
  for (int32_t i = 0; i < kStrings; ++i) table.add(std::to_string(i));
  EXPECT_GE(table.size_bytes(), static_cast<int64_t>(n_bytes));
  EXPECT_LE(table.size_bytes(), static_cast<int64_t>(n_bytes) + 16 * kStrings);
}

}  // namespace
}  // namespace kz::text
