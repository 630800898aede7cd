// Session::generate: prompt, then sample, decode and stream until something ends it.
#include <fmt/format.h>

#include <chrono>

#include "engine/session_impl.h"

namespace kz {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Token bytes on their way to the caller: complete characters only, stop strings held back.
class TextStream {
 public:
  TextStream(const GenerateOptions& options, std::string& text)
      : on_text_(options.on_text), stop_(options.stop), text_(text) {}

  void push(std::string_view bytes) { show(stop_.push(decoder_.push(bytes))); }
  void finish() {
    if (!stop_.stopped()) show(stop_.push(decoder_.finish()));
    if (!stop_.stopped()) show(stop_.finish());
  }
  bool stopped() const { return stop_.stopped(); }
  bool refused() const { return refused_; }

 private:
  void show(std::string_view text) {
    if (text.empty()) return;
    text_ += text;
    if (on_text_ && !refused_ && !on_text_(text)) refused_ = true;
  }

  const std::function<bool(std::string_view)>& on_text_;
  StreamDecoder decoder_;
  StopMatcher stop_;
  std::string& text_;
  bool refused_ = false;
};

void check_options(const GenerateOptions& options) {
  check(options.sampler);
  if (options.n_predict < -1 || options.n_predict > INT32_MAX) {
    throw Error(ErrorCode::bad_argument,
                fmt::format("the number of new tokens is {}, expected -1 to {}", options.n_predict, INT32_MAX));
  }
  for (size_t i = 0; i < options.stop.size(); ++i) {
    if (options.stop[i].empty()) throw Error(ErrorCode::bad_argument, fmt::format("stop string {} is empty", i + 1));
  }
}

/// One answer; run() is the loop, its result says why it ended.
class Generation {
 public:
  Generation(SessionCore& session, const GenerateOptions& options, GenerateResult& result)
      : session_(session),
        tokenizer_(session.core->tokenizer.get()),
        options_(options),
        result_(result),
        stream_(options, result.text) {
    const auto room = static_cast<size_t>(session.sequence.plan().n_ctx) - session.history.size();
    result.tokens.reserve(options.n_predict < 0 ? room : std::min(room, static_cast<size_t>(options.n_predict)));
    std::span<const int32_t> suppressed;
    if (options.sampler.ignore_eos && tokenizer_ != nullptr) suppressed = tokenizer_->end_tokens();
    session.sampler.start(options.sampler, static_cast<uint64_t>(result.seed), suppressed);
  }

  FinishReason run() {
    const auto n_ctx = static_cast<size_t>(session_.sequence.plan().n_ctx);
    const size_t n_prompt = session_.history.size();
    const size_t n_predict = options_.n_predict < 0 ? SIZE_MAX : static_cast<size_t>(options_.n_predict);
    std::vector<int32_t>& tokens = result_.tokens;
    while (true) {
      if (tokens.size() >= n_predict) return FinishReason::length;
      if (n_prompt + tokens.size() >= n_ctx) return FinishReason::context;
      if (session_.is_cancelled.load(std::memory_order_relaxed)) return FinishReason::cancelled;
      // The last sampled token is evaluated only when another one is wanted.
      if (!tokens.empty()) session_.append({&tokens.back(), 1}, true);
      const int32_t id = session_.sampler.sample(text_logits());
      if (tokenizer_ != nullptr && tokenizer_->ends_generation(id)) return FinishReason::stop;
      tokens.push_back(id);
      if (tokenizer_ != nullptr) stream_.push(tokenizer_->piece(id, options_.show_special));
      if (stream_.stopped()) return FinishReason::stop;
      if (stream_.refused()) return FinishReason::cancelled;
    }
  }

  void finish_text() { stream_.finish(); }

 private:
  /// Rows of the embedding beyond the vocabulary are padding and stand for no text.
  std::span<const float> text_logits() const {
    return tokenizer_ == nullptr ? session_.logits : session_.logits.first(static_cast<size_t>(tokenizer_->size()));
  }

  SessionCore& session_;
  const Tokenizer* tokenizer_;
  const GenerateOptions& options_;
  GenerateResult& result_;
  TextStream stream_;
};

}  // namespace

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::context:
      return "context";
    case FinishReason::cancelled:
      return "cancelled";
  }
  return "unknown";
}

GenerateResult Session::generate(std::span<const int32_t> prompt, const GenerateOptions& options) {
  check_options(options);
  impl_->check_prompt(prompt);
  impl_->is_cancelled = false;
  const auto placed = impl_->core->place_caller();
  GenerateResult result;
  result.seed = options.sampler.seed >= 0 ? options.sampler.seed : fresh_seed();

  const Clock::time_point start = Clock::now();
  try {
    result.n_reused = impl_->sync(prompt);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled) throw;
    result.finish = FinishReason::cancelled;
    result.prompt_seconds = seconds_since(start);
    return result;
  }
  result.n_prompt = static_cast<int64_t>(prompt.size()) - result.n_reused;
  result.prompt_seconds = seconds_since(start);
  if (options.on_prompt_done) options.on_prompt_done();

  const Clock::time_point decode_start = Clock::now();
  Generation generation(*impl_, options, result);
  result.finish = generation.run();
  generation.finish_text();
  result.decode_seconds = seconds_since(decode_start);
  return result;
}

}  // namespace kz
