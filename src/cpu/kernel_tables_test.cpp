#include "cpu/kernel_tables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/error.h"
#include "cpu/cpu_backend.h"

namespace kz {
namespace {

/// The message of the error that making a backend ends with.
std::string message_of(const std::string& isa, ErrorCode expected) {
  try {
    make_cpu_backend({1, isa});
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), expected) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error for " << isa;
  return {};
}

TEST(KernelTables, BaselineIsLastAndRuns) {
  const std::vector<KernelTableInfo> tables = cpu_kernel_tables();
  ASSERT_FALSE(tables.empty());
  EXPECT_EQ(tables.back().name, "scalar");
  EXPECT_TRUE(tables.back().runs_here);
}

TEST(KernelTables, NamesAreUniqueAndTablesAreWhole) {
  std::vector<std::string_view> names;
  for (const KernelTableInfo& table : cpu_kernel_tables()) names.push_back(table.name);
  for (const KernelTable& table : isa_kernel_tables()) {
    const Kernels& k = *table.kernels;
    EXPECT_TRUE(k.dequantise && k.product && k.stored_product && k.weighted_sum && k.softmax && k.merge && k.divide &&
                k.delta)
        << k.name;
    EXPECT_TRUE(k.conv_silu && k.sum_of_squares && k.scale && k.scale_silu_gate && k.swiglu && k.sigmoid_gate &&
                k.add && k.rotate)
        << k.name;
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(KernelTables, AutoTakesTheFirstThatRuns) {
  std::string_view best;
  for (const KernelTableInfo& table : cpu_kernel_tables()) {
    if (best.empty() && table.runs_here) best = table.name;
  }
  EXPECT_EQ(make_cpu_backend({1, "auto"})->kernels(), best);
}

TEST(KernelTables, AForcedTableIsTheOneThatRuns) {
  for (const KernelTableInfo& table : cpu_kernel_tables()) {
    const std::string name(table.name);
    if (!table.runs_here) {
      const std::string text = message_of(name, ErrorCode::unsupported);
      EXPECT_NE(text.find(name), std::string::npos) << text;
      EXPECT_NE(text.find("scalar"), std::string::npos) << text;
      continue;
    }
    const auto backend = make_cpu_backend({2, name});
    EXPECT_EQ(backend->kernels(), name);
    EXPECT_EQ(backend->n_threads(), 2);
    // The function pointers differ from table to table, and the report names the table that ran.
    EXPECT_EQ(select_kernels(name).name, name);
    if (name != "scalar") {
      EXPECT_NE(select_kernels(name).kernels->product, select_kernels("scalar").kernels->product);
    }
    float x[4] = {1, 2, 3, 4}, y[4] = {1, 1, 1, 1};
    backend->add(matrix_f32(x, 4, 1), matrix_f32(y, 4, 1));
    EXPECT_EQ(x[3], 5.0f);
    const std::vector<KernelUse> uses = backend->kernel_uses();
    ASSERT_EQ(uses.size(), 1u);
    EXPECT_EQ(uses[0].verb, "add");
    EXPECT_EQ(uses[0].kernel, "f32 " + name);
    EXPECT_EQ(uses[0].device, "CPU");
    EXPECT_EQ(uses[0].calls, 1);
  }
}

TEST(KernelTables, AnUnknownNameListsTheKnownOnes) {
  for (const std::string name : {"avx1024", "", "AVX2", "Auto"}) {
    const std::string text = message_of(name, ErrorCode::bad_argument);
    EXPECT_NE(text.find("'" + name + "'"), std::string::npos) << text;
    for (const KernelTableInfo& table : cpu_kernel_tables()) {
      EXPECT_NE(text.find(table.name), std::string::npos) << text;
    }
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace kz
