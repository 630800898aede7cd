#include "apps/cli/bench_output.h"

#include <gtest/gtest.h>
#include <kazeia/error.h>

#include "apps/cli/bench_profile.h"
#include "apps/cli/bench_row.h"

namespace kz::cli {
namespace {

/// Two decode repetitions of 4 tokens (2 s and 4 s) over 3 GB of weights.
BenchResult decode_result() {
  BenchResult result;
  result.test = {0, 4, 16};
  result.seconds = {2, 4};
  result.limits = {{"plain", 10e9, {{"avx2", 1e11}}}, {"2 streams", 12e9, {{"avx2", 3e11}}}};
  result.weight_bytes = 12'000'000'000;
  result.kv_bytes = 400;
  result.state_bytes = 800;
  result.multiply_adds = 24'000'000'000;
  result.memory = {5 << 20, 3 << 20, 1 << 20};
  result.minor_faults = 7;
  result.logits_hash = 0xabc;
  result.profile.total_seconds = 2;
  result.profile.verbs = {{"linear", "q8 strips avx2, Q4_0", "CPU", 8, "ffn_up", 4'000'000'000, 1.0, 8, 1000},
                          {"rope", "f32 avx2", "CPU", 8, "", 0, 0.5, 8, 0}};
  return result;
}

nlohmann::ordered_json row_of(const BenchResult& result, const std::string& name = "a \"b\", c") {
  EngineOptions options;
  options.model.path = KZ_SOURCE_DIR "/models/kazeia-tiny-q4_0.gguf";
  options.n_threads = 1;
  options.isa = "scalar";
  const auto engine = Engine::open(options);
  BenchSetup setup;
  setup.model_hash = "0123456789abcdef";
  setup.activations = "f32";
  setup.machine.cpu = name;
  setup.machine.last_cache_bytes = int64_t{1} << 30;
  BenchConditions conditions;
  conditions.n_batch = conditions.n_ubatch = 512;
  conditions.key_type = "f16";
  conditions.value_type = "q8_0";
  conditions.first_token_seconds = {{32, 0.5}};
  return bench_row(*engine, setup, conditions, result);
}

/// Lines of CSV as fields, quotes resolved.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> lines{{""}};
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"') {
      lines.back().back() += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      lines.back().emplace_back();
    } else if (c == '\n' && !quoted) {
      lines.push_back({""});
    } else {
      lines.back().back() += c;
    }
  }
  EXPECT_FALSE(quoted);
  lines.pop_back();  // behind the last line end
  return lines;
}

TEST(Statistics, OfASample) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 9}), 3);
  EXPECT_EQ(mean({1, 2, 6}), 3);
  EXPECT_EQ(standard_deviation({5}), 0);
  EXPECT_DOUBLE_EQ(standard_deviation({2, 4, 4, 4, 5, 5, 7, 9}), std::sqrt(32.0 / 7));
}

TEST(BenchRow, SharesAreMediansOverMedians) {
  const auto row = row_of(decode_result());
  EXPECT_DOUBLE_EQ(row["median_ts"], (2.0 + 1.0) / 2);
  EXPECT_EQ(row["avg_ns"], 3'000'000'000);
  EXPECT_EQ(row["test"], "tg4 @ d16");
  EXPECT_EQ(row["weight_bytes_per_token"], 3'000'000'000);
  EXPECT_EQ(row["kv_bytes_per_token"], 100);
  EXPECT_EQ(row["state_bytes_per_token"], 200);
  EXPECT_DOUBLE_EQ(row["limit_read_bytes_s"], 11e9);
  EXPECT_DOUBLE_EQ(row["read_bytes_s"], (12e9 + 1200) / 3);
  EXPECT_DOUBLE_EQ(row["read_share"], (12e9 + 1200) / 3 / 11e9);
  EXPECT_TRUE(row["int8_share"].is_null());  // a decode test is not bound by multiplication
  EXPECT_DOUBLE_EQ(row["int8_peaks_mac_s"]["avx2"], 2e11);
  EXPECT_EQ(row["logits_hash"], "0000000000000abc");
  EXPECT_EQ(row["first_token_ms"]["32"], 500.0);
}

TEST(BenchRow, SmallModelsHaveNoShareOfTheBandwidth) {
  BenchResult result = decode_result();
  result.weight_bytes = 4 * ((int64_t{2} << 30) - 4);
  EXPECT_TRUE(row_of(result)["read_share"].is_null());
  result.weight_bytes = 4 * (int64_t{2} << 30);
  EXPECT_FALSE(row_of(result)["read_share"].is_null());
  result.limits.clear();
  EXPECT_TRUE(row_of(result)["read_share"].is_null());
}

TEST(BenchRow, PromptsAreMeasuredByMultiplications) {
  BenchResult result = decode_result();
  result.test = {4, 0, 0};
  const auto row = row_of(result);
  EXPECT_TRUE(row["read_share"].is_null());
  EXPECT_DOUBLE_EQ(row["mac_s"], 8e9);
  EXPECT_TRUE(row["int8_share"].is_null());  // the scalar table has no instruction to compare with
}

TEST(BenchOutput, JsonReadsBack) {
  const auto row = row_of(decode_result());
  EXPECT_EQ(nlohmann::ordered_json::parse(bench_text(BenchFormat::json, {row, row})),
            (nlohmann::ordered_json{row, row}));
  EXPECT_EQ(nlohmann::ordered_json::parse(bench_text(BenchFormat::json, {})), nlohmann::ordered_json::array());
  const std::string lines = bench_text(BenchFormat::json_lines, {row, row});
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  EXPECT_EQ(nlohmann::ordered_json::parse(lines.substr(0, lines.find('\n'))), row);
}

TEST(BenchOutput, CsvReadsBack) {
  const auto row = row_of(decode_result());
  const auto lines = parse_csv(bench_text(BenchFormat::csv, {row, row}));
  ASSERT_EQ(lines.size(), 3u);
  ASSERT_EQ(lines[0].size(), row.size());
  ASSERT_EQ(lines[1].size(), row.size());
  EXPECT_EQ(lines[1], lines[2]);
  size_t field = 0;
  for (const auto& [name, value] : row.items()) {
    EXPECT_EQ(lines[0][field], name);
    const std::string expected = value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump();
    EXPECT_EQ(lines[1][field], expected) << name;
    ++field;
  }
}

TEST(BenchOutput, MarkdownHasTheSameCellsInEveryLine) {
  const std::string text = bench_text(BenchFormat::markdown, {row_of(decode_result())});
  std::vector<std::ptrdiff_t> bars;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    if (line.starts_with("|")) bars.push_back(std::count(line.begin(), line.end(), '|'));
    at = end + 1;
  }
  ASSERT_EQ(bars.size(), 3u);
  EXPECT_EQ(bars[0], bars[1]);
  EXPECT_EQ(bars[0], bars[2]);
  EXPECT_NE(text.find("| tg4 @ d16 | 1.50 \xc2\xb1 0.71 |"), std::string::npos) << text;
  EXPECT_NE(text.find("\nbuild: "), std::string::npos);
}

TEST(BenchOutput, TableShowsLimitsAndDoubts) {
  BenchResult result = decode_result();
  result.same_logits = false;
  const std::string text = bench_text(BenchFormat::table, {row_of(result, "a\x1b[31m")});
  EXPECT_NE(text.find("reading 11.0 GB/s"), std::string::npos) << text;
  EXPECT_NE(text.find("36.4 %"), std::string::npos) << text;
  EXPECT_NE(text.find("0000000000000abc (not always)"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(BenchOutput, FormatsHaveNames) {
  EXPECT_EQ(parse_bench_format("md"), BenchFormat::markdown);
  EXPECT_EQ(parse_bench_format("jsonl"), BenchFormat::json_lines);
  EXPECT_THROW(parse_bench_format("sql"), Error);
  EXPECT_THROW(parse_bench_format(""), Error);
}

TEST(BenchProfile, OtherIsWhatNoVerbHas) {
  const auto profile = profile_json(decode_result());
  EXPECT_DOUBLE_EQ(profile["other_seconds"], 0.5);
  EXPECT_EQ(profile["verbs"][0]["weights"], "ffn_up");
  EXPECT_DOUBLE_EQ(profile["verbs"][0]["share"], 0.5);
  const std::string text = profile_text(decode_result());
  EXPECT_NE(text.find("ms/token"), std::string::npos);
  EXPECT_NE(text.find("250.000"), std::string::npos) << text;  // 1 s of 4 tokens
  EXPECT_NE(text.find("4.0"), std::string::npos) << text;      // GB/s
}

}  // namespace
}  // namespace kz::cli
