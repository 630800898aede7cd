// What this machine can do at best with the threads of a backend: read memory, multiply 8-bit codes. Shares of these
// limits are the only figures that say how good a speed is.
#pragma once

#include <string_view>
#include <vector>

#include "core/arena.h"
#include "core/thread_pool.h"

namespace kz {

struct ReadRate {
  std::string_view loop;  ///< "plain", "prefetch", "2 streams", ...
  double rate_bytes_s = 0;
};

struct Int8Rate {
  std::string_view kernels;  ///< the strip kernels whose instruction it is: "avx2", "avx512vnni", ...
  double rate_mac_s = 0;     ///< multiply-adds of 8-bit codes per second
};

/// Memory to read, in large pages where the system has them, as packed weights are.
class ReadProbe {
 public:
  /// Throws Error(out_of_memory). All pages are touched here.
  ReadProbe(ThreadPool& pool, int64_t size_bytes);
  /// Reads everything once with every loop. Each thread takes pieces of its own part, the last ones of another's.
  std::vector<ReadRate> measure() const;
  int64_t size_bytes() const { return static_cast<int64_t>(memory_.size_bytes()); }

 private:
  ThreadPool& pool_;
  Arena memory_;
};

/// The rate of every instruction for 8-bit products that this CPU has, all threads together; about 20 ms each.
std::vector<Int8Rate> measure_int8_peaks(ThreadPool& pool);

/// The name among those of measure_int8_peaks() that a kernel table multiplies with; empty when it is not among them.
std::string_view int8_peak_of(std::string_view table);

/// Bytes of the largest cache that the first core knows, 0 where the system does not say.
int64_t last_cache_bytes();
/// "Intel(R) Xeon(R) Processor"; "unknown" where the system does not say.
std::string cpu_name();

}  // namespace kz
