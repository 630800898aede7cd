// Measuring an engine: tests of prompt and decode speed, and the limits of the machine that they are compared with.
// docs/bench.md says what every figure means.
#pragma once

#include <kazeia/engine.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kz {

/// Fills the context with n_depth tokens (not timed), then evaluates n_prompt tokens and decodes n_gen one by one.
struct BenchTest {
  int64_t n_prompt = 0, n_gen = 0, n_depth = 0;
  int64_t n_tokens() const { return n_prompt + n_gen; }
  int64_t n_ctx() const { return n_depth + n_prompt + n_gen; }
  std::string name() const;  ///< "pp512", "tg128 @ d4096", "pp512+tg128"
};

struct Int8Peak {
  std::string kernels;    ///< the kernel tables that use this instruction: "avx512vnni"
  double rate_mac_s = 0;  ///< multiply-adds of 8-bit codes per second, all threads
};

/// What the machine did at best with the engine's threads, one after the other in the same minute.
struct MachineLimits {
  std::string read_loop;  ///< the fastest of the read loops
  double read_rate_bytes_s = 0;
  std::vector<Int8Peak> int8;  ///< of every instruction that this CPU has
};

/// Measures the limits with an engine's own threads. Holds memory to read: max(2 GiB, 4 x the last cache).
class LimitMeter {
 public:
  /// Throws Error(unsupported) for a backend without threads of its own, Error(out_of_memory).
  explicit LimitMeter(const Engine& engine);
  ~LimitMeter();
  MachineLimits measure() const;
  int64_t buffer_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Memory of this process as the system sees it. Zero where it does not say.
struct ProcessMemory {
  int64_t peak_bytes = 0;       ///< most resident memory since reset_peak(), or of all time where that is refused
  int64_t anonymous_bytes = 0;  ///< resident now, belonging to no file
  int64_t file_bytes = 0;       ///< resident now, pages of files
};
ProcessMemory process_memory();
/// Starts peak_bytes again; false where the system refuses.
bool reset_peak_memory();

struct BenchOptions {
  SessionOptions session;  ///< n_ctx is set by the test
  int64_t repetitions = 5;
  bool warm_up = true;
  bool profile = false;                 ///< one more repetition, with the verbs timed
  const LimitMeter* limits = nullptr;   ///< measured after every repetition; null: not at all
  std::function<void()> on_repetition;  ///< called before each; may throw to stop
};

/// One more repetition, verb by verb.
struct BenchProfile {
  std::vector<KernelPlacement> verbs;  ///< what this repetition added; lines without a call left out
  double total_seconds = 0;
};

struct BenchResult {
  BenchTest test;
  std::vector<double> seconds;        ///< of each repetition
  std::vector<MachineLimits> limits;  ///< of each repetition, empty without a meter
  // Counted per repetition; all of them do the same.
  int64_t weight_bytes = 0;                    ///< of weights that the products read
  int64_t kv_bytes = 0;                        ///< of KV rows that attention reads
  int64_t state_bytes = 0;                     ///< of recurrent states, read and written
  int64_t multiply_adds = 0;                   ///< of the products
  int64_t minor_faults = 0, major_faults = 0;  ///< page faults of the timed part, all repetitions together
  ProcessMemory memory;                        ///< at the end of the last repetition, without the meter's buffer
  uint64_t logits_hash = 0;                    ///< of the last row of logits of the first repetition
  bool same_logits = true;                     ///< whether the other repetitions have the same
  BenchProfile profile;

  double bytes_per_repetition() const { return static_cast<double>(weight_bytes + kv_bytes + state_bytes); }
};

/// Throws Error(bad_argument) when the test does not fit the model's context, Error(out_of_memory) when its session
/// would need more memory than the system has left.
void check_bench_test(const Engine& engine, const BenchTest& test, const BenchOptions& options);
/// Random token ids, the same in every run. Throws what check_bench_test() throws.
BenchResult run_bench(const Engine& engine, const BenchTest& test, const BenchOptions& options);
/// Seconds from a prompt of n_prompt random tokens to the likeliest next one, from an empty context.
double time_to_first_token(const Engine& engine, const SessionOptions& options, int64_t n_prompt);

/// What a row of figures says about its machine and its file.
struct MachineFacts {
  std::string cpu;
  int64_t last_cache_bytes = 0;  ///< of the largest cache
};
MachineFacts machine_facts();
/// 16 hexadecimal digits made from the size of each of the model's files, all its keys and its list of tensors, and 4
/// KiB at each of 64 places spread over it.
std::string model_fingerprint(const Engine& engine);
/// "avx2" for the table "avx512": whose Int8Peak a kernel table is compared with. Empty when there is none.
std::string int8_peak_name(std::string_view kernel_table);

}  // namespace kz
