// Ctrl-C. The first one asks the running work to stop cleanly, the second one ends the process with 130.
#pragma once

#include <functional>

namespace kz::cli {

/// From now on Ctrl-C is handled here. Call before any other thread exists: threads inherit the blocked signal.
void watch_interrupts();

/// Whether Ctrl-C was pressed.
bool interrupt_requested();
/// Throws Error(cancelled) when it was: for work that is cancelled between two steps.
void throw_if_interrupted();

/// While it lives, the first Ctrl-C calls `stop` (on another thread); at once if it was pressed before.
class InterruptHandler {
 public:
  explicit InterruptHandler(std::function<void()> stop);
  ~InterruptHandler();
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;
};

}  // namespace kz::cli
