// Ctrl-C, and the requests of the system to end (SIGTERM, SIGHUP). The first one asks the running work to stop cleanly,
// so that nothing half written stays behind; the second one ends the process at once. A signal that was ignored when
// the program started (nohup, a shell's background job) stays ignored.
#pragma once

#include <functional>
#include <string>

namespace kz::cli {

/// What the second signal does: ends the process, or nothing where stopping takes no time and ending at once would
/// leave a half-written file behind.
enum class SecondSignal { ends, waits };

/// From now on these signals are handled here. Call before any other thread exists: threads inherit the blocked
/// signals.
void watch_interrupts(SecondSignal second = SecondSignal::ends);

/// Whether one of them came.
bool interrupt_requested();
/// The exit code that says so: 128 and the signal's number (130 for Ctrl-C); 0 when none came.
int interrupt_exit_code();
/// Throws Error(cancelled) when one came: for work that is cancelled between two steps.
void throw_if_interrupted();

/// While it lives, the first such signal calls `stop` (on another thread); at once if it came before.
class InterruptHandler {
 public:
  explicit InterruptHandler(std::function<void()> stop);
  ~InterruptHandler();
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;
};

/// While it lives, the second signal removes this file before it ends the process. One at a time.
class RemovedAtExit {
 public:
  explicit RemovedAtExit(std::string path);
  ~RemovedAtExit();
  RemovedAtExit(const RemovedAtExit&) = delete;
  RemovedAtExit& operator=(const RemovedAtExit&) = delete;
};

}  // namespace kz::cli
