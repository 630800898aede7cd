#include "core/affinity.h"

#include <sched.h>

#include <algorithm>
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

}  // namespace

std::vector<int> allowed_cores() {
  Affinity affinity = current_affinity();
  std::vector<int> cores;
  for (size_t core = 0; core < affinity.cpus; ++core) {
    if (CPU_ISSET_S(core, affinity.set.size(), affinity.get())) cores.push_back(static_cast<int>(core));
  }
  return cores;
}

int available_cores() {
  const size_t allowed = allowed_cores().size();
  const unsigned cores = allowed > 0 ? static_cast<unsigned>(allowed) : std::thread::hardware_concurrency();
  return std::max(1, static_cast<int>(cores));
}

void check_cores(std::span<const int> cores) {
  if (cores.empty()) return;
  const std::vector<int> allowed = allowed_cores();
  for (const int core : cores) {
    if (std::find(allowed.begin(), allowed.end(), core) != allowed.end()) continue;
    std::string list;
    for (const int c : allowed) {
      if (!list.empty()) list += ',';
      list += std::to_string(c);
    }
    throw Error(ErrorCode::bad_argument,
                "cores: found " + std::to_string(core) + ", expected cores that this process may use (" + list + ")");
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
