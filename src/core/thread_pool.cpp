#include "core/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"

namespace kz {
namespace {

constexpr int kMostThreads = 1024;
constexpr auto kSpin = std::chrono::microseconds(50);  // longer than the serial steps between the loops of a forward
constexpr uint32_t kOpen = uint32_t{1} << 31;

/// Looks at a condition for a short while, giving way to other threads; false when it did not come true.
template <class Condition>
bool spin_until(Condition&& condition) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; ++i) {
      if (condition()) return true;
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  return condition();
}

}  // namespace

struct ThreadPool::Impl {
  /// One loop body that this thread is inside of; the chain shows a nested call of any depth.
  struct Frame {
    const Impl* pool;
    int worker;
    const Frame* outer;
  };
  static thread_local const Frame* frames;

  /// The loop. Written by the caller while `gate` is closed and empty, read by those who entered an open gate.
  struct Loop {
    Call call = nullptr;
    void* body = nullptr;
    int64_t n = 0;
    int64_t grain = 1;
    int64_t pieces = 0;
  };

  std::mutex callers;  // one loop at a time
  Loop loop;
  alignas(64) std::atomic<int64_t> next_piece{0};
  /// kOpen while pieces may be taken, plus the number of workers that are inside. The caller closes it and waits for
  /// zero: a worker that sleeps through a loop is not waited for.
  alignas(64) std::atomic<uint32_t> gate{0};
  std::atomic<uint64_t> loops_begun{0};
  std::atomic<int> sleeping{0};
  std::atomic<bool> caller_sleeps{false};
  std::atomic<bool> stop{false};

  std::mutex sleep;  // guards the two waits below
  std::condition_variable work_came;
  std::condition_variable gate_empty;

  std::mutex error_lock;
  std::exception_ptr error;
  std::vector<std::thread> threads;

  ~Impl();
  void start(int n_threads);
  void worker_main(int worker);
  void wait_for_loop(uint64_t seen);
  void take_pieces(int worker);
  void leave();
  void open();
  void close();
  int nested_worker() const;
  static void run_in_place(const Loop& l, int worker);
};

thread_local const ThreadPool::Impl::Frame* ThreadPool::Impl::frames = nullptr;

ThreadPool::Impl::~Impl() {
  {
    const std::lock_guard lock(sleep);
    stop = true;
  }
  work_came.notify_all();
  for (std::thread& t : threads) t.join();
}

void ThreadPool::Impl::start(int n_threads) {
  threads.reserve(static_cast<size_t>(n_threads - 1));
  for (int worker = 1; worker < n_threads; ++worker) {
    try {
      threads.emplace_back([this, worker] { worker_main(worker); });
    } catch (const std::system_error& e) {
      throw Error(ErrorCode::out_of_memory, "cannot start thread " + std::to_string(worker + 1) + " of " +
                                                std::to_string(n_threads) + ": " + e.code().message());
    }
  }
}

void ThreadPool::Impl::worker_main(int worker) {
  uint64_t seen = 0;
  while (true) {
    wait_for_loop(seen);
    if (stop) return;
    seen = loops_begun;
    if (gate.fetch_add(1) & kOpen) take_pieces(worker);
    leave();
  }
}

void ThreadPool::Impl::wait_for_loop(uint64_t seen) {
  if (spin_until([&] { return loops_begun != seen || stop; })) return;
  std::unique_lock lock(sleep);
  ++sleeping;  // before the last look: open() counts the loop first and looks at `sleeping` after that
  work_came.wait(lock, [&] { return loops_begun != seen || stop; });
  --sleeping;
}

void ThreadPool::Impl::take_pieces(int worker) {
  const Loop& l = loop;
  const Frame frame{this, worker, frames};
  frames = &frame;
  for (int64_t piece; (piece = next_piece.fetch_add(1)) < l.pieces;) {
    const int64_t begin = piece * l.grain;
    const int64_t end = l.n - begin > l.grain ? begin + l.grain : l.n;
    try {
      l.call(l.body, begin, end, worker);
    } catch (...) {
      next_piece = l.pieces;  // nobody starts another piece
      const std::lock_guard lock(error_lock);
      if (!error) error = std::current_exception();
    }
  }
  frames = frame.outer;
}

void ThreadPool::Impl::leave() {
  if (gate.fetch_sub(1) != 1 || !caller_sleeps) return;
  {
    const std::lock_guard lock(sleep);
  }  // the caller is either before its last look or already waiting
  gate_empty.notify_one();
}

void ThreadPool::Impl::open() {
  next_piece = 0;
  gate.fetch_or(kOpen);
  ++loops_begun;
  const int64_t wanted = loop.pieces - 1;
  const int asleep = sleeping;
  if (asleep == 0) return;
  {
    const std::lock_guard lock(sleep);
  }
  if (wanted >= asleep) {
    work_came.notify_all();
  } else {
    for (int64_t i = 0; i < wanted; ++i) work_came.notify_one();
  }
}

void ThreadPool::Impl::close() {
  gate.fetch_and(~kOpen);
  if (spin_until([&] { return gate == 0; })) return;
  std::unique_lock lock(sleep);
  caller_sleeps = true;
  gate_empty.wait(lock, [&] { return gate == 0; });
  caller_sleeps = false;
}

int ThreadPool::Impl::nested_worker() const {
  for (const Frame* f = frames; f != nullptr; f = f->outer) {
    if (f->pool == this) return f->worker;
  }
  return -1;
}

void ThreadPool::Impl::run_in_place(const Loop& l, int worker) {
  for (int64_t piece = 0; piece < l.pieces; ++piece) {
    const int64_t begin = piece * l.grain;
    const int64_t end = l.n - begin > l.grain ? begin + l.grain : l.n;
    l.call(l.body, begin, end, worker);
  }
}

ThreadPool::ThreadPool(int n_threads) {
  if (n_threads < 0 || n_threads > kMostThreads) {
    throw Error(ErrorCode::bad_argument, "threads: " + std::to_string(n_threads) + ", expected 0 to " +
                                             std::to_string(kMostThreads) + " (0 is one per core)");
  }
  impl_ = std::make_unique<Impl>();
  impl_->start(n_threads == 0 ? std::min(available_cores(), kMostThreads) : n_threads);
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::size() const { return static_cast<int>(impl_->threads.size()) + 1; }

void ThreadPool::run(int64_t n, int64_t grain, Call function, void* body) {
  KZ_CHECK(grain > 0);
  if (n <= 0) return;
  const Impl::Loop loop{function, body, n, grain, (n - 1) / grain + 1};
  const int nested = impl_->nested_worker();
  if (nested >= 0) {
    Impl::run_in_place(loop, nested);
    return;
  }
  const std::lock_guard one_loop(impl_->callers);
  impl_->loop = loop;
  const bool alone = loop.pieces == 1 || impl_->threads.empty();
  if (alone) {
    impl_->next_piece = 0;
    impl_->take_pieces(0);
  } else {
    impl_->open();
    impl_->take_pieces(0);
    impl_->close();
  }
  if (impl_->error) std::rethrow_exception(std::exchange(impl_->error, nullptr));
}

int available_cores() {
  // The kernel refuses a set that is smaller than its own: grow until it fits.
  for (int cpus = CPU_SETSIZE; cpus <= (1 << 20); cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpus));
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  const unsigned cores = std::thread::hardware_concurrency();
  return cores > 0 ? static_cast<int>(cores) : 1;
}

}  // namespace kz
