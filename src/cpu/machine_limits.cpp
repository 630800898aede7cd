#include "cpu/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "core/error.h"
#include "cpu/kernel_tables.h"

namespace kz {
namespace {

using Clock = std::chrono::steady_clock;
using Block [[gnu::vector_size(16)]] = uint64_t;

constexpr int64_t kPieceBytes = int64_t{64} << 20;
constexpr int64_t kLineBytes = 64;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Walks kStreams equal parts side by side, and asks for what lies kAhead bytes further on. Two lines of a part at a
/// time; eight sums, so that no addition waits for another.
template <int kStreams, int kAhead>
uint64_t read_piece(const std::byte* memory, int64_t size_bytes) {
  constexpr int64_t kStep = 2 * kLineBytes;
  const int64_t part = size_bytes / kStreams;
  Block sums[8] = {};
  for (int64_t at = 0; at < part; at += kStep) {
    for (int stream = 0; stream < kStreams; ++stream) {
      const std::byte* p = memory + stream * part + at;
      if constexpr (kAhead > 0) {
        __builtin_prefetch(p + kAhead);
        __builtin_prefetch(p + kAhead + kLineBytes);
      }
      for (int i = 0; i < 8; ++i) {
        Block block;
        std::memcpy(&block, p + 16 * i, sizeof(block));
        sums[i] ^= block;
      }
    }
  }
  uint64_t all = 0;
  for (const Block& sum : sums) all ^= sum[0] ^ sum[1];
  return all;
}

struct ReadLoop {
  std::string_view name;
  uint64_t (*read)(const std::byte* memory, int64_t size_bytes);
};

// Which one is best differs from machine to machine, and here from hour to hour.
constexpr ReadLoop kReadLoops[] = {{"plain", read_piece<1, 0>},
                                   {"prefetch", read_piece<1, 1024>},
                                   {"prefetch far", read_piece<1, 2048>},
                                   {"2 streams", read_piece<2, 1024>},
                                   {"4 streams", read_piece<4, 1024>}};

}  // namespace

ReadProbe::ReadProbe(ThreadPool& pool, int64_t size_bytes)
    : pool_(pool),
      memory_("read probe", static_cast<size_t>((size_bytes + kPieceBytes - 1) / kPieceBytes * kPieceBytes)) {
  memory_.prefer_large_pages();
  pool_.parallel_for(this->size_bytes(), kPieceBytes, [&](int64_t begin, int64_t end, int worker) {
    std::memset(memory_.data() + begin, worker + 1, static_cast<size_t>(end - begin));
  });
}

std::vector<ReadRate> ReadProbe::measure() const {
  std::vector<ReadRate> rates;
  std::atomic<uint64_t> seen = 0;
  for (const ReadLoop& loop : kReadLoops) {
    const Clock::time_point start = Clock::now();
    pool_.parallel_for(size_bytes(), kPieceBytes, [&](int64_t begin, int64_t end, int) {
      seen.fetch_xor(loop.read(memory_.data() + begin, end - begin), std::memory_order_relaxed);
    });
    rates.push_back({loop.name, static_cast<double>(size_bytes()) / seconds_since(start)});
  }
  KZ_CHECK(seen.load() == 0);  // every 16 bytes are equal to their neighbours, and their number is even
  return rates;
}

std::vector<Int8Rate> measure_int8_peaks(ThreadPool& pool) {
  constexpr double kSeconds = 0.02;
  std::vector<Int8Rate> rates;
  for (const PeakEntry& entry : isa_peak_loops()) {
    if (!entry.runs_here()) continue;
    const PeakLoop& loop = *entry.loop;
    std::atomic<int32_t> seen = 0;
    // Pieces of about a millisecond at first guess; then as many as the wanted time holds.
    constexpr int64_t kRounds = 100000;
    const auto run = [&](int64_t n_pieces) {
      const Clock::time_point start = Clock::now();
      pool.parallel_for(n_pieces, 1, [&](int64_t begin, int64_t end, int) {
        seen.fetch_xor(loop.run(kRounds * (end - begin)), std::memory_order_relaxed);
      });
      return seconds_since(start);
    };
    const double first = run(pool.size());
    const int64_t n_pieces = pool.size() * std::clamp<int64_t>(static_cast<int64_t>(kSeconds / first), 1, 1000);
    const double seconds = run(n_pieces);
    rates.push_back({loop.name, static_cast<double>(n_pieces * kRounds * loop.round_multiply_adds) / seconds});
  }
  return rates;
}

std::string_view int8_peak_of(std::string_view table) {
  for (const KernelTable& entry : isa_kernel_tables()) {
    if (entry.name != table) continue;
    const StripKernels& used = entry.batches != nullptr ? *entry.batches : *entry.strips;
    for (const PeakEntry& peak : isa_peak_loops()) {
      if (std::string_view(peak.loop->name) == used.name) return peak.loop->name;
    }
  }
  return {};
}

}  // namespace kz
