// A long life in one process: sessions come and go, prompts are extended, cut back and replaced, answers are sampled
// and cancelled, engines are opened and closed. Memory must not grow. The last line is the result, exit status 1 when
// memory grew or an answer was wrong.
#include <fmt/format.h>
#include <kazeia/engine.h>

#include <unistd.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace {

constexpr int64_t kMostGrowthBytes = int64_t{6} << 20;
constexpr int kWarmUpRounds = 12;

/// Resident bytes that no file backs (private and shared), from /proc/self/status.
int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  int64_t total_kib = 0;
  while (status >> word) {
    int64_t kib = 0;
    if ((word == "RssAnon:" || word == "RssShmem:") && status >> kib) total_kib += kib;
  }
  return total_kib * 1024;
}

struct Figures {
  int64_t n_rounds = 0, n_sessions = 0, n_tokens = 0;
};

/// One round: a fresh session with three turns, the second cancelled half-way, the third a greedy question.
bool round_trip(const kz::Engine& engine, Figures& figures) {
  kz::SessionOptions session_options;
  session_options.n_ctx = 512 + 256 * (figures.n_rounds % 4);
  const auto session = engine.open_session(session_options);
  ++figures.n_sessions;

  kz::GenerateOptions options;
  options.n_predict = 80;
  options.sampler.seed = figures.n_rounds;
  std::vector<int32_t> prompt = engine.chatml_prompt("Tell me a story about a bear.", "", false);
  const kz::GenerateResult story = session->generate(prompt, options);

  prompt.insert(prompt.end(), story.tokens.begin(), story.tokens.end());
  int64_t left = 10;
  options.sampler.ignore_eos = true;
  options.on_text = [&left](std::string_view) { return --left > 0; };
  const kz::GenerateResult cut = session->generate(prompt, options);

  kz::GenerateOptions greedy;
  greedy.sampler.temperature = 0;
  const auto question = engine.chatml_prompt("What is the capital of Peru?", "", false);
  const kz::GenerateResult answer = session->generate(question, greedy);
  figures.n_tokens += static_cast<int64_t>(story.tokens.size() + cut.tokens.size() + answer.tokens.size());
  ++figures.n_rounds;
  return answer.text == "The capital of Peru is Lima.";
}

int soak(const std::string& path, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  kz::EngineOptions options;
  options.model.path = path;
  Figures figures;
  int64_t warm_bytes = 0;
  while (passed() < seconds || figures.n_rounds <= kWarmUpRounds) {
    const auto engine = kz::Engine::open(options);
    for (int i = 0; i < 4; ++i) {
      if (round_trip(*engine, figures)) continue;
      fmt::print("soak: wrong answer in round {}\n", figures.n_rounds);
      return 1;
    }
    if (figures.n_rounds <= kWarmUpRounds) warm_bytes = anonymous_bytes();
  }
  const int64_t grown = anonymous_bytes() - warm_bytes;
  fmt::print("soak: {:.0f} s, {} sessions, {} tokens, anonymous memory {:.1f} MiB after warm-up, {:+.1f} MiB since\n",
             passed(), figures.n_sessions, figures.n_tokens, static_cast<double>(warm_bytes) / (1 << 20),
             static_cast<double>(grown) / (1 << 20));
  return grown > kMostGrowthBytes ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: kazeia_soak MODEL.gguf SECONDS\n");
    return 1;
  }
  try {
    return soak(argv[1], std::atof(argv[2]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "kazeia_soak: {}\n", error.what());
    return 1;
  }
}
