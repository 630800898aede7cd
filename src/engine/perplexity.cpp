// Perplexity of a text: docs/perplexity.md.
#include <fmt/format.h>
#include <kazeia/engine.h>

#include <algorithm>
#include <cmath>

namespace kz {
namespace {

constexpr int64_t kMinContext = 8;

/// -log softmax(logits)[id], in double over the whole vocabulary.
double negative_log_likelihood(std::span<const float> logits, int32_t id) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - top);
  return std::log(sum) + top - static_cast<double>(logits[static_cast<size_t>(id)]);
}

/// Sums over the scored predictions.
struct Score {
  double sum = 0;
  double sum_of_squares = 0;
  int64_t count = 0;

  void add(double nll) {
    sum += nll;
    sum_of_squares += nll * nll;
    ++count;
  }
  double perplexity() const { return std::exp(sum / static_cast<double>(count)); }
  double standard_error() const {
    if (count < 2) return 0;
    const double n = static_cast<double>(count);
    const double variance = sum_of_squares / n - (sum / n) * (sum / n);
    return perplexity() * std::sqrt(std::max(variance, 0.0) / (n - 1));
  }
};

void score_chunk(const Engine& engine, std::span<const int32_t> ids, const SessionOptions& options, Score& score) {
  const auto n_ctx = static_cast<int64_t>(ids.size());
  const auto on_row = [&](int64_t position, std::span<const float> logits) {
    score.add(negative_log_likelihood(logits, ids[static_cast<size_t>(position) + 1]));
  };
  // The last position predicts a token of the next chunk, so it is not evaluated.
  engine.evaluate(ids.first(static_cast<size_t>(n_ctx - 1)), options, on_row, n_ctx / 2);
}

}  // namespace

PerplexityResult perplexity(const Engine& engine, std::string_view text, int64_t n_ctx, const SessionOptions& options,
                            const std::function<void(int64_t chunk, int64_t n_chunks, double running)>& on_chunk) {
  if (n_ctx < kMinContext) {
    throw Error(ErrorCode::bad_argument,
                fmt::format("context size is {}, expected {} or more for a perplexity", n_ctx, kMinContext));
  }
  if (text.ends_with('\n')) text.remove_suffix(1);
  std::vector<int32_t> ids = engine.tokenize(text);
  PerplexityResult result;
  result.n_tokens = static_cast<int64_t>(ids.size());
  result.n_chunks = result.n_tokens / n_ctx;
  if (result.n_chunks == 0) {
    throw Error(ErrorCode::bad_argument, fmt::format("the text has {} tokens, expected at least one chunk of {} tokens",
                                                     result.n_tokens, n_ctx));
  }
  const ModelInfo& info = engine.info();
  Score score;
  for (int64_t chunk = 0; chunk < result.n_chunks; ++chunk) {
    const std::span<int32_t> chunk_ids(ids.data() + chunk * n_ctx, static_cast<size_t>(n_ctx));
    if (info.adds_bos && info.bos >= 0) chunk_ids[0] = info.bos;
    score_chunk(engine, chunk_ids, options, score);
    result.running.push_back(score.perplexity());
    if (on_chunk) on_chunk(chunk, result.n_chunks, result.running.back());
  }
  result.n_scored = score.count;
  result.perplexity = score.perplexity();
  result.standard_error = score.standard_error();
  return result;
}

}  // namespace kz
