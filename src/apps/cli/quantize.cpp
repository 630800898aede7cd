// `kazeia quantize`: a smaller copy of a model.
#include "apps/cli/commands.h"
#include "apps/cli/console.h"
#include "apps/cli/flags.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/terminal.h"
#include "apps/cli/text.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

namespace kz::cli {
namespace {

constexpr const char* kFooter =
    "Types: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q4_K_M, Q5_K, Q5_K_M, Q6_K, IQ4_NL, F16,\n"
    "BF16, F32.\n"
    "OUT appears when it is complete; on any error a file that was there before stays as it was.\n"
    "\n"
    "Examples:\n"
    "  kazeia quantize model-f16.gguf model-q4_0.gguf Q4_0\n"
    "  kazeia quantize model-f16.gguf model-q8_0.gguf Q8_0 --pure";

struct QuantizeFlags {
  std::string source, target;
  QuantizeOptions options;
  int64_t n_threads = 0;
  bool json = false;
};

int run_quantize(QuantizeFlags& flags) {
  watch_interrupts(SecondSignal::waits);
  QuantizeResult result;
  {
    ProgressBar bar("Quantising");
    flags.options.n_threads = static_cast<int>(flags.n_threads);
    flags.options.progress = [&bar](uint64_t done, uint64_t total) {
      throw_if_interrupted();
      if (total > 0) bar.show(static_cast<double>(done) / static_cast<double>(total));
    };
    result = quantize(flags.source, flags.target, flags.options);
  }
  if (flags.json) {
    print_json({{"source", flags.source},
                {"target", flags.target},
                {"type", flags.options.type},
                {"source_bytes", result.source_bytes},
                {"target_bytes", result.target_bytes},
                {"fallbacks", result.fallbacks}});
    return 0;
  }
  for (const std::string& fallback : result.fallbacks) write_err(fmt::format("note: {}\n", printable(fallback)));
  write_out(fmt::format("{}: {} -> {} ({})\n", printable(flags.target), size_text(result.source_bytes),
                        size_text(result.target_bytes), flags.options.type));
  return 0;
}

}  // namespace

void add_quantize(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("quantize", "Write a smaller copy of a model");
  command->footer(kFooter);
  const auto flags = std::make_shared<QuantizeFlags>();
  command->add_option("IN", flags->source, "The model to read")->required();
  command->add_option("OUT", flags->target, "The file to write")->required();
  command->add_option("TYPE", flags->options.type, "The type of its weights")->required();
  add_switch(*command, "--pure,!--no-pure", flags->options.pure,
             "Every weight that can be quantised in that type, embeddings included");
  add_switch(*command, "--allow-requantize,!--no-allow-requantize", flags->options.allow_requantize,
             "Accept a model that is quantised already (it loses twice)");
  add_integer(*command, "-t,--threads", "N", flags->n_threads, 0, kMaxThreads, "Threads; 0 (default): one per core");
  add_switch(*command, "--json", flags->json, "Print one JSON object at the end");
  command->callback([flags, &action] { action = [flags] { return run_quantize(*flags); }; });
}

}  // namespace kz::cli
