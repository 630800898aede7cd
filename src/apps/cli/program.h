// The program `kazeia`: parses a command line, runs the chosen command, turns errors into one line and an exit code.
#pragma once

#include <string>
#include <vector>

namespace kz::cli {

constexpr int kExitOk = 0;
constexpr int kExitError = 1;          ///< any error: arguments, loading, running, writing
constexpr int kExitInterrupted = 130;  ///< Ctrl-C before an answer began, or a second Ctrl-C
// 128 + N: ended by signal N, cleanly (interrupt_exit_code())

/// Runs the command line `args` (without the program's name). Writes results to stdout and, on failure, exactly one
/// line "kazeia: ..." to stderr. Returns the exit code; throws nothing.
int run_program(const std::vector<std::string>& args);

}  // namespace kz::cli
