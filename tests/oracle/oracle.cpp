#include "oracle.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "cpu/cpu_backend.h"

namespace kz::testing {
namespace {

std::string data_path(const std::string& file) { return std::string(KZ_TEST_DATA) + "/oracle/" + file; }

const nlohmann::json& index_json() {
  static const nlohmann::json parsed = nlohmann::json::parse(read_text_file(data_path("oracle.json")));
  return parsed;
}

}  // namespace

std::string Oracle::path() const { return data_path(name + ".f16.gguf"); }

std::vector<std::string> oracle_names() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : index_json().at("files").items()) names.push_back(name);
  return names;
}

Oracle load_oracle(const std::string& name) {
  const nlohmann::json& all = index_json();
  const nlohmann::json& entry = all.at("files").at(name);
  Oracle oracle;
  oracle.name = name;
  oracle.tokens = all.at("ids").get<std::vector<int32_t>>();
  oracle.positions = all.at("positions").get<std::vector<int32_t>>();
  oracle.n_vocab = all.at("vocab").get<int64_t>();
  oracle.argmax = entry.at("argmax_all").get<std::vector<int32_t>>();
  oracle.logsumexp = entry.at("logsumexp_all").get<std::vector<double>>();
  const std::string bytes = read_text_file(data_path(name + ".logits.f32"));
  oracle.rows.resize(bytes.size() / sizeof(float));
  std::memcpy(oracle.rows.data(), bytes.data(), oracle.rows.size() * sizeof(float));
  KZ_CHECK(oracle.rows.size() == oracle.positions.size() * static_cast<size_t>(oracle.n_vocab));
  KZ_CHECK(oracle.argmax.size() == oracle.tokens.size() && oracle.logsumexp.size() == oracle.tokens.size());
  return oracle;
}

double relative_error(std::span<const float> a, std::span<const float> b) {
  KZ_CHECK(a.size() == b.size());
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += d * d;
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(difference / norm);
}

double log_sum_exp(std::span<const float> row) {
  const double top = static_cast<double>(*std::max_element(row.begin(), row.end()));
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x) - top);
  return top + std::log(sum);
}

int32_t arg_max(std::span<const float> row) {
  return static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

double worst_row_error(const Oracle& oracle, std::span<const float> logits) {
  const auto n_vocab = static_cast<size_t>(oracle.n_vocab);
  KZ_CHECK(logits.size() == oracle.tokens.size() * n_vocab);
  double worst = 0;
  for (size_t i = 0; i < oracle.positions.size(); ++i) {
    const std::span<const float> row = logits.subspan(static_cast<size_t>(oracle.positions[i]) * n_vocab, n_vocab);
    const double error = relative_error(row, std::span(oracle.rows).subspan(i * n_vocab, n_vocab));
    if (!(error <= worst)) worst = error;  // a NaN is the worst
  }
  return worst;
}

std::unique_ptr<Backend> make_backend(Device device) {
  return device == Device::reference ? make_reference_backend() : make_cpu_backend({});
}

}  // namespace kz::testing
