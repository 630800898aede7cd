#include "apps/cli/bench_output.h"

#include "apps/cli/text.h"

#include <fmt/format.h>

#include <kazeia/error.h>

namespace kz::cli {
namespace {

using Row = nlohmann::ordered_json;

std::string json_text(const Row& value, int indent) {
  return value.dump(indent, ' ', false, Row::error_handler_t::replace);
}

double number(const Row& row, const char* field) { return row.at(field).is_null() ? 0 : row.at(field).get<double>(); }
std::string text(const Row& row, const char* field) { return printable(row.at(field).get<std::string>()); }

/// "24.1" for a rate in bytes or multiply-adds, "-" for none.
std::string billions(const Row& row, const char* field) {
  return row.at(field).is_null() ? "-" : fmt::format("{:.1f}", number(row, field) / 1e9);
}

std::string percent(const Row& row, const char* field) {
  return row.at(field).is_null() ? "-" : fmt::format("{:.1f} %", 100 * number(row, field));
}

std::string kv_types(const Row& row) {
  const std::string keys = text(row, "type_k"), values = text(row, "type_v");
  return keys == values ? keys : keys + "/" + values;
}

std::string first_tokens(const Row& row) {
  std::string out;
  for (const auto& [n_prompt, milliseconds] : row.at("first_token_ms").items()) {
    out += fmt::format("{}{:.0f} ms ({})", out.empty() ? "" : ", ", milliseconds.get<double>(), n_prompt);
  }
  return out.empty() ? "-" : out;
}

/// What all rows with this beginning share, above them.
std::string headline(const Row& row) {
  std::string peaks;
  for (const auto& [name, rate] : row.at("int8_peaks_mac_s").items()) {
    peaks += fmt::format(", {} {:.0f} GMAC/s", name, rate.get<double>() / 1e9);
  }
  std::string out = fmt::format("kazeia   {}\n", text(row, "version"));
  out += fmt::format("machine  {}\n", text(row, "cpu_info"));
  out += fmt::format("model    {}: {}, {}, hash {}\n", text(row, "model_filename"), text(row, "model_type"),
                     size_text(row.at("model_size").get<int64_t>()), text(row, "model_hash"));
  if (number(row, "limit_read_bytes_s") > 0) {
    out += fmt::format("limits   reading {:.1f} GB/s ({}){}\n", number(row, "limit_read_bytes_s") / 1e9,
                       text(row, "limit_read_loop"), peaks);
  }
  return out;
}

std::string table_text(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> cells = {{"test", "thr", "kernels", "class", "KV", "tok/s", "+-", "GB/s",
                                                  "of limit", "GMAC/s", "of peak", "peak", "anon", "file", "faults",
                                                  "logits", "first token after"}};
  for (const Row& row : rows) {
    cells.push_back(
        {text(row, "test"), std::to_string(row.at("n_threads").get<int>()), text(row, "kernels"),
         text(row, "activations"), kv_types(row), fmt::format("{:.2f}", number(row, "median_ts")),
         fmt::format("{:.2f}", number(row, "stddev_ts")), billions(row, "read_bytes_s"), percent(row, "read_share"),
         billions(row, "mac_s"), percent(row, "int8_share"), size_text(row.at("peak_bytes").get<int64_t>()),
         size_text(row.at("anonymous_bytes").get<int64_t>()), size_text(row.at("file_bytes").get<int64_t>()),
         fmt::format("{}+{}", row.at("minor_faults").get<int64_t>(), row.at("major_faults").get<int64_t>()),
         text(row, "logits_hash") + (row.at("same_logits").get<bool>() ? "" : " (not always)"), first_tokens(row)});
  }
  std::string out = rows.empty() ? "" : headline(rows.front());
  return out + table(cells, {1, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14});
}

std::string markdown_text(const std::vector<Row>& rows) {
  std::string out =
      "| model | size | params | backend | kernels | class | threads | kv | test | t/s | GB/s | of limit | GMAC/s | "
      "of peak | peak | logits |\n"
      "| --- | ---: | ---: | --- | --- | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n";
  for (const Row& row : rows) {
    out += fmt::format(
        "| {} | {} | {:.2f} B | {} | {} | {} | {} | {} | {} | {:.2f} \xc2\xb1 {:.2f} | {} | {} | {} | {} | {} | {}{} "
        "|\n",
        text(row, "model_type"), size_text(row.at("model_size").get<int64_t>()), number(row, "model_n_params") / 1e9,
        text(row, "backend"), text(row, "kernels"), text(row, "activations"), row.at("n_threads").get<int>(),
        kv_types(row), text(row, "test"), number(row, "median_ts"), number(row, "stddev_ts"),
        billions(row, "read_bytes_s"), percent(row, "read_share"), billions(row, "mac_s"), percent(row, "int8_share"),
        size_text(row.at("peak_bytes").get<int64_t>()), text(row, "logits_hash"),
        row.at("same_logits").get<bool>() ? "" : " (not always)");
  }
  if (!rows.empty()) out += fmt::format("\nbuild: {}\n", text(rows.front(), "build_commit"));
  return out;
}

std::string csv_text(const std::vector<Row>& rows) {
  std::string out;
  const auto add_line = [&out](const Row& row, auto field_text) {
    bool is_first = true;
    for (const auto& [name, value] : row.items()) {
      if (!is_first) out += ',';
      out += field_text(name, value);
      is_first = false;
    }
    out += "\n";
  };
  if (!rows.empty()) add_line(rows.front(), [](const std::string& name, const Row&) { return name; });
  for (const Row& row : rows) add_line(row, [](const std::string&, const Row& value) { return csv_field(value); });
  return out;
}

}  // namespace

BenchFormat parse_bench_format(const std::string& name) {
  if (name == "table") return BenchFormat::table;
  if (name == "md" || name == "markdown") return BenchFormat::markdown;
  if (name == "csv") return BenchFormat::csv;
  if (name == "json") return BenchFormat::json;
  if (name == "jsonl") return BenchFormat::json_lines;
  throw Error(ErrorCode::bad_argument,
              fmt::format("-o is '{}', expected table, md, csv, json or jsonl", one_line(name)));
}

std::string csv_field(const nlohmann::ordered_json& value) {
  if (value.is_null()) return "";
  if (value.is_number() || value.is_boolean()) return json_text(value, -1);
  const std::string plain = value.is_string() ? value.get<std::string>() : json_text(value, -1);
  std::string quoted = "\"";
  for (const char c : plain) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string bench_text(BenchFormat format, const std::vector<nlohmann::ordered_json>& rows) {
  switch (format) {
    case BenchFormat::table:
      return table_text(rows);
    case BenchFormat::markdown:
      return markdown_text(rows);
    case BenchFormat::csv:
      return csv_text(rows);
    case BenchFormat::json:
      return json_text(Row(rows), 2) + "\n";
    case BenchFormat::json_lines:
      break;
  }
  std::string lines;
  for (const Row& row : rows) lines += json_text(row, -1) + "\n";
  return lines;
}

}  // namespace kz::cli
