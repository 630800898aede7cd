#include "apps/cli/interrupt.h"

#include "apps/cli/program.h"

#include <kazeia/error.h>

#include <unistd.h>
#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>

namespace kz::cli {
namespace {

/// Shared with a thread that never ends, so it is never destroyed.
struct Watch {
  std::mutex mutex;
  std::function<void()> stop;  // guarded by mutex
  std::atomic<bool> requested{false};
};

Watch& watch() {
  static Watch* const instance = new Watch;
  return *instance;
}

sigset_t interrupt_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

/// Waiting in a thread, and not in a signal handler, lets the reaction use locks.
void wait_for_interrupts() {
  const sigset_t set = interrupt_set();
  int signal = 0;
  while (sigwait(&set, &signal) != 0) {
  }
  {
    const std::lock_guard lock(watch().mutex);
    watch().requested = true;
    if (watch().stop) watch().stop();
  }
  while (sigwait(&set, &signal) != 0) {
  }
  _exit(kExitInterrupted);
}

}  // namespace

void watch_interrupts() {
  const sigset_t set = interrupt_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread(wait_for_interrupts).detach();
}

bool interrupt_requested() { return watch().requested; }

void throw_if_interrupted() {
  if (interrupt_requested()) throw Error(ErrorCode::cancelled, "interrupted");
}

InterruptHandler::InterruptHandler(std::function<void()> stop) {
  const std::lock_guard lock(watch().mutex);
  if (watch().requested) stop();
  watch().stop = std::move(stop);
}

InterruptHandler::~InterruptHandler() {
  const std::lock_guard lock(watch().mutex);
  watch().stop = nullptr;
}

}  // namespace kz::cli
