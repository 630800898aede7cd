// What the process settles with the system before anything else.
#pragma once

namespace kz::cli {

/// Makes writing failures errors instead of signals, keeps files off the numbers of stdin, stdout and stderr, and ends
/// the program with one line and kExitError when the pages of a mapped file can no longer be read.
void prepare_process();

}  // namespace kz::cli
