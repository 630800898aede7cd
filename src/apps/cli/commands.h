// The commands of `kazeia`, one file each (run.cpp, inspect.cpp, ...).
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace kz::cli {

/// What parsing selects and run_program() then calls; returns an exit code, may throw kz::Error.
using Action = std::function<int()>;

/// Each adds one subcommand to `app`; when the user chooses it, `action` becomes its work.
void add_run(CLI::App& app, Action& action);
void add_tokenize(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_logits(CLI::App& app, Action& action);
void add_perplexity(CLI::App& app, Action& action);
void add_quantize(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);

/// Prints the kernel tables of this build and whether this machine runs them (--list-isa).
void print_kernel_tables();

}  // namespace kz::cli
