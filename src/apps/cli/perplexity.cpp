// `kazeia perplexity`: how well a model predicts a text.
#include "apps/cli/commands.h"
#include "apps/cli/console.h"
#include "apps/cli/flags.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/text.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace kz::cli {
namespace {

constexpr const char* kRule =
    "the text is cut into chunks of -c tokens, each is run from an empty context, and only the "
    "predictions of its second half count (llama.cpp's rule)";

constexpr const char* kFooter =
    "Rule: the text is cut into chunks of -c tokens (an incomplete last one is dropped), each is run\n"
    "from an empty context, and only the predictions of its second half count: llama.cpp's rule, so\n"
    "that figures can be compared. Keys and values are cached as f32 unless -ctk/-ctv say otherwise.\n"
    "\n"
    "Example:\n"
    "  kazeia perplexity -m model.gguf -f text.txt -c 512";

struct PerplexityFlags {
  ModelFlags model;
  SessionFlags session;
  TextFlags text;
  bool json = false;
};

nlohmann::json result_json(const Engine& engine, const SessionOptions& options, const PerplexityResult& result) {
  return {{"perplexity", result.perplexity},  {"standard_error", result.standard_error},
          {"n_tokens", result.n_tokens},      {"n_chunks", result.n_chunks},
          {"n_scored", result.n_scored},      {"n_ctx", options.n_ctx},
          {"running", result.running},        {"rule", kRule},
          {"cache_type_k", options.key_type}, {"cache_type_v", options.value_type},
          {"backend", engine.backend()},      {"kernels", engine.kernels()}};
}

int run_perplexity(PerplexityFlags& flags) {
  const std::string text = flags.text.read();
  watch_interrupts();
  const std::unique_ptr<Engine> engine = Engine::open(flags.model.engine_options());
  SessionOptions& options = flags.session.options;
  if (options.n_ctx == 0) options.n_ctx = engine->info().n_ctx_train;
  const auto on_chunk = [&flags](int64_t chunk, int64_t n_chunks, double running) {
    throw_if_interrupted();
    if (flags.json) return;
    write_out(fmt::format("[{}]{:.4f}{}", chunk + 1, running, chunk + 1 < n_chunks ? "," : "\n"));
    flush_out();
  };
  const PerplexityResult result = perplexity(*engine, text, options.n_ctx, options, on_chunk);
  if (flags.json) {
    print_json(result_json(*engine, options, result));
    return 0;
  }
  write_out(fmt::format("{} tokens, {} chunks of {}, {} tokens scored; {}\n", result.n_tokens, result.n_chunks,
                        options.n_ctx, result.n_scored, kRule));
  write_out(fmt::format("Final estimate: PPL = {:.4f} +/- {:.5f}\n", result.perplexity, result.standard_error));
  return 0;
}

}  // namespace

void add_perplexity(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("perplexity", "Measure how well a model predicts a text");
  command->footer(kFooter);
  const auto flags = std::make_shared<PerplexityFlags>();
  flags->session.options.n_ctx = 512;
  flags->session.options.key_type = "f32";
  flags->session.options.value_type = "f32";
  flags->model.add_path(*command);
  flags->text.add(*command, "The text; use -f for a long one");
  flags->session.add(*command, "Tokens of one chunk; 0: what the model allows (default 512)");
  flags->model.add_compute(*command);
  add_switch(*command, "--json", flags->json, "Print one JSON object at the end");
  command->callback([flags, &action] { action = [flags] { return run_perplexity(*flags); }; });
}

}  // namespace kz::cli
