#include "core/thread_pool.h"

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

#include "core/affinity.h"
#include "core/error.h"

namespace kz {
namespace {

constexpr int kMostThreads = 1024;
constexpr auto kSpin = std::chrono::microseconds(50);  // longer than the serial steps between the loops of a forward
constexpr uint32_t kOpen = uint32_t{1} << 31;
constexpr int64_t kMostPieces = int64_t{1} << 31;  // of one loop; two such numbers share a word

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

/// Pieces [next, end) that one worker has still to take. The owner takes from the front, so that it walks memory in one
/// direction, and others take half of the rest from the back: a core that is slow or busy elsewhere keeps only what it
/// gets done.
class alignas(64) Share {
 public:
  /// Nobody takes or steals meanwhile.
  void give(int64_t next, int64_t end) { range_.store(pack(next, end)); }
  /// The next piece, or -1.
  int64_t take() {
    // Beyond the end `next` only grows by one for each failed take of the owner: it never reaches the upper half.
    const uint64_t before = range_.fetch_add(1);
    return next_of(before) < end_of(before) ? next_of(before) : -1;
  }
  /// Moves the back half (one piece at least) into `to`, which is empty and belongs to the thief.
  bool steal(Share& to) {
    uint64_t before = range_.load();
    while (true) {
      const int64_t next = next_of(before), end = end_of(before), left = end - next;
      if (left <= 0) return false;
      const int64_t kept = next + left / 2;
      if (!range_.compare_exchange_weak(before, pack(next, kept))) continue;
      to.give(kept, end);
      return true;
    }
  }

 private:
  static uint64_t pack(int64_t next, int64_t end) {
    return static_cast<uint64_t>(end) << 32 | static_cast<uint64_t>(next);
  }
  static int64_t next_of(uint64_t range) { return static_cast<int64_t>(range & 0xffffffff); }
  static int64_t end_of(uint64_t range) { return static_cast<int64_t>(range >> 32); }

  std::atomic<uint64_t> range_{0};
};

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
  std::unique_ptr<Share[]> shares;  // one per worker
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
  std::atomic<bool> failed{false};  // nobody starts another piece
  std::vector<std::thread> threads;
  std::vector<int> cores;

  ~Impl();
  int n_workers() const { return static_cast<int>(threads.size()) + 1; }
  void start(int n_threads);
  void worker_main(int worker);
  void wait_for_loop(uint64_t seen);
  void share_out(int n_shares);
  void take_pieces(int worker);
  bool steal(int thief);
  void run_piece(int64_t piece, int worker);
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
  shares = std::make_unique<Share[]>(static_cast<size_t>(n_threads));
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
  if (!cores.empty()) pin_this_thread(cores[static_cast<size_t>(worker) % cores.size()]);
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

/// Equal parts of neighbouring pieces for the first n_shares workers.
void ThreadPool::Impl::share_out(int n_shares) {
  const int64_t n = loop.pieces;
  for (int w = 0; w < n_workers(); ++w) {
    const int64_t place = std::min(w, n_shares);
    shares[static_cast<size_t>(w)].give(n * place / n_shares, n * std::min<int64_t>(place + 1, n_shares) / n_shares);
  }
}

void ThreadPool::Impl::take_pieces(int worker) {
  const Frame frame{this, worker, frames};
  frames = &frame;
  Share& own = shares[static_cast<size_t>(worker)];
  do {
    for (int64_t piece; (piece = own.take()) >= 0;) run_piece(piece, worker);
  } while (steal(worker));
  frames = frame.outer;
}

bool ThreadPool::Impl::steal(int thief) {
  const int n = n_workers();
  for (int i = 1; i < n; ++i) {
    const int victim = (thief + i) % n;
    if (shares[static_cast<size_t>(victim)].steal(shares[static_cast<size_t>(thief)])) return true;
  }
  return false;
}

void ThreadPool::Impl::run_piece(int64_t piece, int worker) {
  if (failed.load(std::memory_order_relaxed)) return;
  const Loop& l = loop;
  const int64_t begin = piece * l.grain;
  const int64_t end = l.n - begin > l.grain ? begin + l.grain : l.n;
  try {
    l.call(l.body, begin, end, worker);
  } catch (...) {
    failed = true;
    const std::lock_guard lock(error_lock);
    if (!error) error = std::current_exception();
  }
}

void ThreadPool::Impl::leave() {
  if (gate.fetch_sub(1) != 1 || !caller_sleeps) return;
  {
    const std::lock_guard lock(sleep);
  }  // the caller is either before its last look or already waiting
  gate_empty.notify_one();
}

void ThreadPool::Impl::open() {
  share_out(static_cast<int>(std::min<int64_t>(n_workers(), loop.pieces)));
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

ThreadPool::ThreadPool(int n_threads, std::span<const int> cores) {
  if (n_threads < 0 || n_threads > kMostThreads) {
    throw Error(ErrorCode::bad_argument, "threads: " + std::to_string(n_threads) + ", expected 0 to " +
                                             std::to_string(kMostThreads) + " (0 is one per core)");
  }
  check_cores(cores);
  impl_ = std::make_unique<Impl>();
  impl_->cores.assign(cores.begin(), cores.end());
  impl_->start(n_threads == 0 ? std::min(available_cores(), kMostThreads) : n_threads);
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::size() const { return static_cast<int>(impl_->threads.size()) + 1; }

void ThreadPool::run(int64_t n, int64_t grain, Call function, void* body) {
  KZ_CHECK(grain > 0);
  if (n <= 0) return;
  const Impl::Loop loop{function, body, n, grain, (n - 1) / grain + 1};
  KZ_CHECK(loop.pieces < kMostPieces);
  const int nested = impl_->nested_worker();
  if (nested >= 0) {
    Impl::run_in_place(loop, nested);
    return;
  }
  const std::lock_guard one_loop(impl_->callers);
  impl_->loop = loop;
  const bool alone = loop.pieces == 1 || impl_->threads.empty();
  if (alone) {
    impl_->share_out(1);
    impl_->take_pieces(0);
  } else {
    impl_->open();
    impl_->take_pieces(0);
    impl_->close();
  }
  if (!impl_->failed) return;
  impl_->failed = false;
  std::rethrow_exception(std::exchange(impl_->error, nullptr));
}

}  // namespace kz
