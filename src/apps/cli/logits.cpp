// `kazeia logits`: the model's raw output for given token ids, to compare with other engines.
#include "apps/cli/commands.h"
#include "apps/cli/console.h"
#include "apps/cli/flags.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/output_file.h"
#include "apps/cli/text.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

namespace kz::cli {
namespace {

constexpr const char* kFooter =
    "The ids are raw little-endian int32, the rows raw little-endian float32: one row of\n"
    "vocabulary size per id, in order. Keys and values are cached as f32 unless -ctk/-ctv say otherwise.\n"
    "\n"
    "Example:\n"
    "  kazeia logits -m model.gguf --ids prompt.i32 -o rows.f32 --backend reference";

struct LogitsFlags {
  ModelFlags model;
  SessionFlags session;
  std::string ids, output;
  bool json = false;
};

std::vector<int32_t> read_ids(const std::string& path) {
  constexpr uint64_t kMostIds = uint64_t{1} << 24;  // the longest context
  const std::string bytes = read_bytes(path, kMostIds * sizeof(int32_t));
  if (bytes.empty() || bytes.size() % sizeof(int32_t) != 0) {
    throw Error(ErrorCode::bad_argument,
                fmt::format("{}: expected int32 ids, so a multiple of 4 bytes; found {} bytes", path, bytes.size()));
  }
  std::vector<int32_t> ids(bytes.size() / sizeof(int32_t));
  std::memcpy(ids.data(), bytes.data(), bytes.size());
  return ids;
}

int run_logits(LogitsFlags& flags) {
  const ModelSource source = flags.model.source();
  if (flags.ids.empty()) throw Error(ErrorCode::bad_argument, "no ids given: use --ids FILE.i32");
  if (flags.output.empty()) throw Error(ErrorCode::bad_argument, "no output given: use -o FILE.f32");
  const std::vector<int32_t> ids = read_ids(flags.ids);
  refuse_input_as_output(flags.output, std::array{flags.ids, source.path});
  const int64_t n_ctx = flags.session.options.n_ctx;
  if (n_ctx > 0 && ids.size() > static_cast<size_t>(n_ctx)) {
    throw Error(ErrorCode::bad_argument,
                fmt::format("{}: has {} ids, but the context holds {} (-c sets it)", flags.ids, ids.size(), n_ctx));
  }
  watch_interrupts();
  const std::unique_ptr<Engine> engine = Engine::open(flags.model.engine_options());
  refuse_input_as_output(flags.output, engine->info().files);
  OutputFile output(flags.output);
  size_t width = 0;
  engine->evaluate(ids, flags.session.options, [&](int64_t, std::span<const float> row) {
    throw_if_interrupted();
    width = row.size();
    output.write(std::as_bytes(row));
  });
  output.commit();
  if (flags.json) {
    print_json({{"output", flags.output},
                {"n_rows", ids.size()},
                {"n_vocab", width},
                {"backend", engine->backend()},
                {"kernels", engine->kernels()}});
  } else {
    write_err(fmt::format("{}: {} rows of {} float32 ({} backend, {} kernels)\n", printable(flags.output), ids.size(),
                          width, engine->backend(), engine->kernels()));
  }
  return 0;
}

}  // namespace

void add_logits(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("logits", "Write the logits of every position of a list of token ids");
  command->footer(kFooter);
  const auto flags = std::make_shared<LogitsFlags>();
  flags->session.options.n_ctx = 0;
  flags->session.options.key_type = "f32";
  flags->session.options.value_type = "f32";
  flags->model.add_path(*command);
  add_text(*command, "--ids", "FILE", flags->ids, "Token ids, raw int32");
  add_text(*command, "-o,--output", "FILE", flags->output, "Where the rows go, raw float32; replaced when complete");
  flags->session.add(*command, "Accept at most N ids; 0 (default): as many as the file holds");
  flags->model.add_compute(*command);
  add_switch(*command, "--json", flags->json, "Print one JSON object about what was written");
  command->callback([flags, &action] { action = [flags] { return run_logits(*flags); }; });
}

}  // namespace kz::cli
