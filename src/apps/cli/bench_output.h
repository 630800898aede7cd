// Rows of figures as a table, Markdown, CSV or JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace kz::cli {

enum class BenchFormat { table, markdown, csv, json, json_lines };
/// "table", "md", "csv", "json" or "jsonl". Throws Error(bad_argument).
BenchFormat parse_bench_format(const std::string& name);

/// The text of all rows: what a format has in front of them, the rows and what stands behind.
std::string bench_text(BenchFormat format, const std::vector<nlohmann::ordered_json>& rows);

/// One field as CSV: text in double quotes, lists and objects as JSON text, null empty.
std::string csv_field(const nlohmann::ordered_json& value);

}  // namespace kz::cli
