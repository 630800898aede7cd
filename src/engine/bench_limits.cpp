// The limits of the machine, measured with an engine's own threads; and what the system says about it.
#include <fmt/format.h>
#include <kazeia/bench.h>

#include <algorithm>

#include "cpu/machine_limits.h"
#include "engine/engine_core.h"

namespace kz {
namespace {

ThreadPool& pool_of(Backend& backend) {
  if (ThreadPool* pool = backend.threads()) return *pool;
  throw Error(ErrorCode::unsupported,
              fmt::format("the {} backend has no threads to measure the machine's limits with", backend.name()));
}

int64_t probe_bytes() { return std::max(int64_t{2} << 30, 4 * last_cache_bytes()); }

}  // namespace

struct LimitMeter::Impl {
  explicit Impl(std::shared_ptr<EngineCore> engine)
      : core(std::move(engine)), pool(pool_of(*core->backend)), probe(pool, probe_bytes()) {}
  std::shared_ptr<EngineCore> core;
  ThreadPool& pool;
  ReadProbe probe;
};

LimitMeter::LimitMeter(const Engine& engine) : impl_(std::make_unique<Impl>(engine.impl_->core)) {}
LimitMeter::~LimitMeter() = default;
int64_t LimitMeter::buffer_bytes() const { return impl_->probe.size_bytes(); }

MachineLimits LimitMeter::measure() const {
  const auto pinned = impl_->core->place_caller();
  const std::lock_guard lock(impl_->core->forward_mutex);
  MachineLimits limits;
  for (const ReadRate& rate : impl_->probe.measure()) {
    if (rate.rate_bytes_s <= limits.read_rate_bytes_s) continue;
    limits.read_rate_bytes_s = rate.rate_bytes_s;
    limits.read_loop = rate.loop;
  }
  for (const Int8Rate& rate : measure_int8_peaks(impl_->pool)) {
    limits.int8.push_back({std::string(rate.kernels), rate.rate_mac_s});
  }
  return limits;
}

MachineFacts machine_facts() { return {cpu_name(), last_cache_bytes()}; }

std::string int8_peak_name(std::string_view kernel_table) { return std::string(int8_peak_of(kernel_table)); }

}  // namespace kz
