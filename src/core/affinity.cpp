#include "core/affinity.h"

#include <sched.h>

#include <string>
#include <thread>
#include <vector>

#include "core/error.h"

namespace kz {
namespace {

constexpr int kMostCores = 1 << 20;

/// The affinity mask of the calling thread, empty when the system does not tell.
struct Affinity {
  std::vector<char> set;
  size_t cpus = 0;
  cpu_set_t* get() { return reinterpret_cast<cpu_set_t*>(set.data()); }
};

Affinity current_affinity() {
  // The kernel refuses a set that is smaller than its own: grow until it fits.
  for (size_t cpus = CPU_SETSIZE; cpus <= kMostCores; cpus *= 2) {
    Affinity affinity{std::vector<char>(CPU_ALLOC_SIZE(cpus)), cpus};
    if (sched_getaffinity(0, affinity.set.size(), affinity.get()) == 0) return affinity;
  }
  return {};
}

bool contains(Affinity& affinity, int core) {
  if (core < 0 || static_cast<size_t>(core) >= affinity.cpus) return false;
  return CPU_ISSET_S(static_cast<size_t>(core), affinity.set.size(), affinity.get());
}

}  // namespace

int available_cores() {
  Affinity affinity = current_affinity();
  const int count = affinity.cpus == 0 ? 0 : CPU_COUNT_S(affinity.set.size(), affinity.get());
  if (count > 0) return count;
  const unsigned cores = std::thread::hardware_concurrency();
  return cores > 0 ? static_cast<int>(cores) : 1;
}

void check_cores(std::span<const int> cores) {
  if (cores.empty()) return;
  Affinity affinity = current_affinity();
  for (const int core : cores) {
    if (contains(affinity, core)) continue;
    std::string allowed;
    for (int c = 0; static_cast<size_t>(c) < affinity.cpus; ++c) {
      if (!contains(affinity, c)) continue;
      if (!allowed.empty()) allowed += ',';
      allowed += std::to_string(c);
    }
    throw Error(ErrorCode::bad_argument, "cores: found " + std::to_string(core) +
                                             ", expected cores that this process may use (" + allowed + ")");
  }
}

void pin_this_thread(int core) {
  const auto wanted = static_cast<size_t>(core);
  std::vector<char> set(CPU_ALLOC_SIZE(wanted + 1), 0);
  auto* cpus = reinterpret_cast<cpu_set_t*>(set.data());
  CPU_SET_S(wanted, set.size(), cpus);
  sched_setaffinity(0, set.size(), cpus);
}

struct PinnedWhile::Mask {
  Affinity affinity;
};

PinnedWhile::PinnedWhile(int core) : before_(std::make_unique<Mask>(Mask{current_affinity()})) {
  pin_this_thread(core);
}

PinnedWhile::PinnedWhile(PinnedWhile&& other) noexcept = default;

PinnedWhile::~PinnedWhile() {
  if (!before_) return;  // moved from
  Affinity& affinity = before_->affinity;
  if (affinity.cpus > 0) sched_setaffinity(0, affinity.set.size(), affinity.get());
}

}  // namespace kz
