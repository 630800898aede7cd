#include "apps/cli/interrupt.h"

#include <kazeia/error.h>

#include <unistd.h>
#include <atomic>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace kz::cli {
namespace {

/// Shared with a thread that never ends, so it is never destroyed.
struct Watch {
  std::mutex mutex;
  std::function<void()> stop;  // guarded by mutex
  std::string unfinished;      // guarded by mutex: a file that must not stay
  std::atomic<int> signal{0};  // the first that came
};

Watch& watch() {
  static Watch* const instance = new Watch;
  return *instance;
}

/// Blocked signals are delivered to sigwait() even when they are ignored, so those are left out here.
sigset_t watched_set() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction current{};
    if (sigaction(signal, nullptr, &current) == 0 && current.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

int exit_code_of(int signal) { return 128 + signal; }

/// Waiting in a thread, and not in a signal handler, lets the reaction use locks.
void wait_for_interrupts(sigset_t set, SecondSignal second) {
  int signal = 0;
  while (sigwait(&set, &signal) != 0) {
  }
  {
    const std::lock_guard lock(watch().mutex);
    watch().signal = signal;
    if (watch().stop) watch().stop();
  }
  while (sigwait(&set, &signal) != 0 || second == SecondSignal::waits) {
  }
  const std::lock_guard lock(watch().mutex);
  if (!watch().unfinished.empty()) unlink(watch().unfinished.c_str());
  _exit(exit_code_of(signal));
}

}  // namespace

void watch_interrupts(SecondSignal second) {
  const sigset_t set = watched_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::thread(wait_for_interrupts, set, second).detach();
}

bool interrupt_requested() { return watch().signal != 0; }

int interrupt_exit_code() { return interrupt_requested() ? exit_code_of(watch().signal) : 0; }

void throw_if_interrupted() {
  if (interrupt_requested()) throw Error(ErrorCode::cancelled, "interrupted");
}

InterruptHandler::InterruptHandler(std::function<void()> stop) {
  const std::lock_guard lock(watch().mutex);
  if (interrupt_requested()) stop();
  watch().stop = std::move(stop);
}

InterruptHandler::~InterruptHandler() {
  const std::lock_guard lock(watch().mutex);
  watch().stop = nullptr;
}

RemovedAtExit::RemovedAtExit(std::string path) {
  const std::lock_guard lock(watch().mutex);
  watch().unfinished = std::move(path);
}

RemovedAtExit::~RemovedAtExit() {
  const std::lock_guard lock(watch().mutex);
  watch().unfinished.clear();
}

}  // namespace kz::cli
