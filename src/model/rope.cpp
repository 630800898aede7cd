#include "model/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace kz {
namespace {

/// Turns within the original context above which a pair keeps its frequency, and below which it is divided fully.
constexpr double kYarnFastTurns = 32;
constexpr double kYarnSlowTurns = 1;

/// The pair (a real number) that turns `turns` times within the original context.
double pair_with_turns(const RopeSettings& s, double turns) {
  const double wavelength = static_cast<double>(s.n_ctx_original) / turns;
  return static_cast<double>(s.n_rot) * std::log(wavelength / (2 * std::numbers::pi)) / (2 * std::log(s.base));
}

/// 1 for pairs that keep their frequency, 0 for those that are divided by the factor.
std::vector<double> yarn_kept_share(const RopeSettings& s) {
  const double lo = std::max(0.0, std::floor(pair_with_turns(s, kYarnFastTurns)));
  const double hi = std::min(static_cast<double>(s.n_rot - 1), std::ceil(pair_with_turns(s, kYarnSlowTurns)));
  std::vector<double> kept(static_cast<size_t>(s.n_rot / 2));
  for (size_t i = 0; i < kept.size(); ++i) {
    kept[i] = 1 - std::clamp((static_cast<double>(i) - lo) / std::max(0.001, hi - lo), 0.0, 1.0);
  }
  return kept;
}

RopeScaling read_scaling(ConfigReader& read) {
  const std::string type = read.text_or("rope.scaling.type", "linear");
  if (type == "none") return RopeScaling::none;
  if (type == "linear") return RopeScaling::linear;
  if (type == "yarn") return RopeScaling::yarn;
  if (type == "longrope") {
    read.unsupported("rope.scaling.type", "is longrope, which is not supported");
  } else {
    read.expect(false, "rope.scaling.type", "is none of none, linear, yarn");
  }
  return RopeScaling::none;
}

void check_rope(ConfigReader& read, const RopeSettings& s, int64_t key_dim) {
  read.expect(s.n_rot % 2 == 0, "rope.dimension_count", fmt::format("is {}, expected even", s.n_rot));
  read.expect(s.n_rot <= key_dim, "rope.dimension_count",
              fmt::format("is {}, expected at most the key length {}", s.n_rot, key_dim));
  read.expect(s.base > 0, "rope.freq_base", fmt::format("is {}, expected above 0", s.base));
  read.expect(s.factor > 0, "rope.scaling.factor", fmt::format("is {}, expected above 0", s.factor));
  if (s.scaling != RopeScaling::yarn) return;
  read.expect(s.factor >= 1, "rope.scaling.factor", fmt::format("is {}, expected at least 1 for yarn", s.factor));
  read.expect(s.base > 1, "rope.freq_base", fmt::format("is {}, expected above 1 for yarn", s.base));
}

}  // namespace

RopeSettings read_rope(ConfigReader& read, const ModelConfig& config, bool adjacent) {
  RopeSettings s;
  s.adjacent = adjacent;
  s.n_rot = read.integer_or("rope.dimension_count", config.key_dim, 1, int64_t{1} << 20);
  s.base = read.number_or("rope.freq_base", 10000);
  s.scaling = read_scaling(read);
  const double old_factor = read.number_or("rope.scale_linear", 0);
  s.factor = read.number_or("rope.scaling.factor", old_factor);
  if (s.factor == 0 || s.scaling == RopeScaling::none) s.factor = 1;  // 0 means "not set"
  s.n_ctx_original = read.integer_or("rope.scaling.original_context_length", config.n_ctx_train, 1, int64_t{1} << 31);
  s.attention_factor = read.number_or("rope.scaling.attn_factor", 1);
  if (read.ok()) check_rope(read, s, config.key_dim);
  return s;
}

RopeTable make_rope_table(const RopeSettings& s) {
  KZ_CHECK(s.n_rot > 0 && s.n_rot % 2 == 0 && s.base > 0 && s.factor > 0);
  RopeTable table;
  table.adjacent = s.adjacent;
  table.magnitude = s.attention_factor;
  table.frequency.resize(static_cast<size_t>(s.n_rot / 2));
  KZ_CHECK(s.divisors.empty() || s.divisors.size() == table.frequency.size());
  const bool yarn = s.scaling == RopeScaling::yarn && s.factor > 1;
  const std::vector<double> kept = yarn ? yarn_kept_share(s) : std::vector<double>(table.frequency.size(), 0.0);
  if (yarn) table.magnitude *= 1 + 0.1 * std::log(s.factor);
  for (size_t i = 0; i < table.frequency.size(); ++i) {
    double theta = std::pow(s.base, -2.0 * static_cast<double>(i) / static_cast<double>(s.n_rot));
    if (!s.divisors.empty()) theta /= s.divisors[i];
    table.frequency[i] = theta / s.factor * (1 - kept[i]) + theta * kept[i];
  }
  return table;
}

}  // namespace kz
