// Rotary position embedding: from the keys of a file to one frequency per pair of features.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "model/config_reader.h"

namespace kz {

enum class RopeScaling { none, linear, yarn };

/// What the file says about its rotary embedding.
struct RopeSettings {
  bool adjacent = false;  ///< pairs (2i, 2i + 1); otherwise (i, i + n_rot/2)
  int64_t n_rot = 0;      ///< features that turn, even
  double base = 10000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;             ///< context extension, > 0
  int64_t n_ctx_original = 0;    ///< context before the extension (YaRN)
  double attention_factor = 1;   ///< multiplies the magnitude
  std::vector<double> divisors;  ///< rope_freqs.weight: one per pair, or empty
};

/// Reads and checks the A.rope.* keys. Longrope is refused.
RopeSettings read_rope(ConfigReader& read, const ModelConfig& config, bool adjacent);

/// Frequencies in double: pair i turns base^(-2i/n_rot) / divisor radians per position; linear scaling divides by the
/// factor, YaRN only the slow pairs (with a ramp between the pairs that turn 32 times and once in the original
/// context) and scales the magnitude by 1 + 0.1 ln(factor). See docs/models/qwen3.md.
RopeTable make_rope_table(const RopeSettings& settings);

}  // namespace kz
