// Which cores threads run on.
#pragma once

#include <memory>
#include <span>
#include <vector>

namespace kz {

/// Cores that the calling thread may run on (its affinity mask), ascending; empty when the system does not tell.
std::vector<int> allowed_cores();

/// How many cores this process may run on, at least 1.
int available_cores();

/// Throws Error(bad_argument) that names the first core which this process may not use.
void check_cores(std::span<const int> cores);

/// Keeps the calling thread on one core. A core that has gone since check_cores() is ignored.
void pin_this_thread(int core);

/// Keeps the calling thread on one core for a while, and gives back the mask it had before.
class PinnedWhile {
 public:
  explicit PinnedWhile(int core);
  ~PinnedWhile();
  PinnedWhile(PinnedWhile&& other) noexcept;
  PinnedWhile& operator=(PinnedWhile&&) = delete;

 private:
  struct Mask;
  std::unique_ptr<Mask> before_;
};

}  // namespace kz
