#include "apps/cli/process.h"

#include "apps/cli/program.h"

#include <fcntl.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace kz::cli {
namespace {

/// A closed standard descriptor would be given to the next file that is opened, and messages would be written into it.
/// The one put in its place refuses to be read (stdin) or written (stdout), and swallows messages (stderr).
void fill_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is taken, and all below this one are in use. Failing changes nothing for the worse.
    [[maybe_unused]] const int taken = open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
  }
}

constexpr char kLostPages[] =
    "kazeia: a mapped file can no longer be read: it was cut or changed while in use, or its disk failed\n";

std::atomic_flag reported_lost_pages;

/// Only calls that are safe in a signal handler.
void on_bus_error(int signal, siginfo_t* info, void*) {
  if (info->si_code != BUS_ADRERR) {  // not a page that went away: a bug, which a core dump should show
    std::signal(signal, SIG_DFL);
    raise(signal);
    return;
  }
  if (reported_lost_pages.test_and_set()) {  // another thread met it first and is about to end the process
    for (;;) pause();
  }
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kLostPages, sizeof(kLostPages) - 1);
  _exit(kExitError);
}

}  // namespace

void prepare_process() {
  fill_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away: EPIPE
  std::signal(SIGXFSZ, SIG_IGN);  // the limit of file sizes: EFBIG
  struct sigaction action{};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace kz::cli
