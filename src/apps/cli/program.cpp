#include "apps/cli/program.h"

#include "apps/cli/arguments.h"
#include "apps/cli/commands.h"
#include "apps/cli/console.h"
#include "apps/cli/flags.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/text.h"

#include <fmt/format.h>
#include <kazeia/engine.h>

#include <CLI/CLI.hpp>
#include <exception>

namespace kz::cli {
namespace {

constexpr const char* kDescription =
    "kazeia - run a language model from a GGUF file, on this machine.\n"
    "\n"
    "Give it a model file and a question; the answer appears as it is computed.";

constexpr const char* kFooter =
    "Examples:\n"
    "  kazeia run -m model.gguf -p \"What is the capital of Peru?\"\n"
    "  kazeia run -m model.gguf -p \"Tell me a story.\" -n 200 --temp 0.7 --seed 1\n"
    "  kazeia inspect -m model.gguf -c 8192\n"
    "  kazeia quantize model-f16.gguf model-q4_0.gguf Q4_0\n"
    "  kazeia bench -m model.gguf\n"
    "\n"
    "`kazeia COMMAND --help` explains one command. The main options can also be set by the\n"
    "environment: --ctx-size is KAZEIA_ARG_CTX_SIZE and so on; what you type wins.\n"
    "Exit status: 0 done, 1 any error (one line on standard error), 130 interrupted (128 + N by signal N).";

int report(std::string_view text, int code) {
  write_err(fmt::format("kazeia: {}\n", one_line(text)));
  return code;
}

void build(CLI::App& app, Action& action, bool& list_isa) {
  app.name("kazeia");
  app.description(kDescription);
  app.footer(kFooter);
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "Show this help and exit");
  app.set_version_flag("--version", [] { return "kazeia " + version(); });
  app.get_option("--version")->description("Show the version and exit");
  app.add_flag("--list-isa", list_isa, "List the kernel tables (instruction sets) of this build and exit");
  add_run(app, action);
  add_tokenize(app, action);
  add_inspect(app, action);
  add_logits(app, action);
  add_perplexity(app, action);
  add_quantize(app, action);
  add_bench(app, action);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) command->group("Commands");
  app.require_subcommand(0, 1);
}

/// The name under which help is asked for in an error line: "kazeia run" or "kazeia".
std::string help_hint(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? "kazeia --help" : "kazeia " + chosen.front()->get_name() + " --help";
}

/// Parses; returns an exit code when the program ends here (help, version, a bad command line), else -1.
/// `notes` gets a line for every flag without effect.
int parse(CLI::App& app, std::vector<std::string> args, std::vector<std::string>& notes) {
  try {
    const auto takes = [&app](const std::string& command, const std::string& option) {
      return takes_value(app, command, option);
    };
    args = translate_arguments(args, takes, notes);
    std::vector<std::string> reversed(args.rbegin(), args.rend());  // CLI11 takes them last first
    app.parse(std::move(reversed));
    return -1;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success)) {
      return report(fmt::format("{} (see {})", error.what(), help_hint(app)), kExitError);
    }
    const auto* version_request = dynamic_cast<const CLI::CallForVersion*>(&error);
    write_out(version_request ? std::string(error.what()) + "\n" : app.help());
    return kExitOk;
  }
}

int run_checked(const std::vector<std::string>& args) {
  CLI::App app;
  Action action;
  bool list_isa = false;
  build(app, action, list_isa);
  std::vector<std::string> notes;
  const int parsed = parse(app, args, notes);
  if (parsed >= 0) return parsed;
  if (list_isa) {
    print_kernel_tables();
    return kExitOk;
  }
  if (!action) return report("no command given (see kazeia --help)", kExitError);
  const int code = action();
  // Behind the work, so that one that fails says one line only.
  for (const std::string& note : notes) write_err(fmt::format("note: {}\n", printable(note)));
  return code;
}

}  // namespace

int run_program(const std::vector<std::string>& args) {
  int code = kExitError;
  try {
    code = run_checked(args);
    flush_out();
  } catch (const Error& error) {
    const bool interrupted = error.code() == ErrorCode::cancelled && interrupt_requested();
    code = report(error.what(), interrupted ? interrupt_exit_code() : kExitError);
  } catch (const std::bad_alloc&) {
    code = report("out of memory", kExitError);
  } catch (const std::exception& error) {
    code = report(error.what(), kExitError);
  }
  return code;
}

}  // namespace kz::cli
