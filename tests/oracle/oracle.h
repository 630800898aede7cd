// The stored logits of the small models in tests/data/oracle (its README says where they come from).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"

namespace kz::testing {

struct Oracle {
  std::string name;
  std::vector<int32_t> tokens;     ///< the same for all models
  std::vector<int32_t> positions;  ///< whose rows are stored
  std::vector<float> rows;         ///< {V, positions}
  std::vector<int32_t> argmax;     ///< of every position
  std::vector<double> logsumexp;   ///< of every position
  int64_t n_vocab = 0;

  std::string path() const;  ///< of the model
};

/// Names of all models.
std::vector<std::string> oracle_names();
Oracle load_oracle(const std::string& name);

/// sqrt(sum((a - b)^2) / sum(b^2)).
double relative_error(std::span<const float> a, std::span<const float> b);
double log_sum_exp(std::span<const float> row);
int32_t arg_max(std::span<const float> row);

/// Largest relative error of the stored rows in logits {V, all positions}.
double worst_row_error(const Oracle& oracle, std::span<const float> logits);

enum class Device { reference, cpu };
std::unique_ptr<Backend> make_backend(Device device);

}  // namespace kz::testing
