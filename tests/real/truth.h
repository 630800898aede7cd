// Class q8 against class f32 of the same file: the numbers that every strip type has to stay within.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/engines.h"
#include "support/numbers.h"

namespace kz::testing {

struct Truth {
  double mean_kl = 0;  ///< of class q8 against class f32, over the scored positions
  double f32_perplexity = 0;
  double q8_perplexity = 0;
  double largest_nll_gap = 0;  ///< largest difference of a chunk's mean negative log-likelihood
  int64_t n_scored = 0;
};

/// Chunks of n_ctx ids from an empty context each; the second half is scored, as `kazeia perplexity` does. Ids behind
/// the last whole chunk are left out. `f32` and `q8` are the same file with float and with 8-bit activations.
inline Truth measure_truth(const Engine& f32, const Engine& q8, std::span<const int32_t> ids, int64_t n_ctx) {
  Truth truth;
  double kl = 0, nll[2] = {0, 0};
  const auto size = static_cast<size_t>(n_ctx), half = size / 2;
  int64_t n_chunks = 0;
  for (size_t at = 0; at + size <= ids.size(); at += size, ++n_chunks) {
    const std::span<const int32_t> chunk = ids.subspan(at, size);
    std::vector<std::vector<float>> exact;
    double chunk_nll[2] = {0, 0};
    const auto score = [&](std::span<const float> row, int64_t position, int which) {
      const int32_t next = chunk[static_cast<size_t>(position) + 1];
      chunk_nll[which] += log_sum_exp(row) - static_cast<double>(row[static_cast<size_t>(next)]);
    };
    const auto inputs = chunk.first(size - 1);
    f32.evaluate(
        inputs, f32_session(n_ctx),
        [&](int64_t position, std::span<const float> row) {
          score(row, position, 0);
          exact.emplace_back(row.begin(), row.end());
        },
        static_cast<int64_t>(half));
    q8.evaluate(
        inputs, f32_session(n_ctx),
        [&](int64_t position, std::span<const float> row) {
          score(row, position, 1);
          kl += kl_divergence(exact[static_cast<size_t>(position) - half], row);
        },
        static_cast<int64_t>(half));
    const auto n = static_cast<double>(exact.size());
    truth.n_scored += static_cast<int64_t>(exact.size());
    truth.largest_nll_gap = std::max(truth.largest_nll_gap, std::fabs(chunk_nll[1] - chunk_nll[0]) / n);
    for (int i = 0; i < 2; ++i) nll[i] += chunk_nll[i];
  }
  const auto n = static_cast<double>(truth.n_scored);
  truth.mean_kl = kl / n;
  truth.f32_perplexity = std::exp(nll[0] / n);
  truth.q8_perplexity = std::exp(nll[1] / n);
  return truth;
}

}  // namespace kz::testing
