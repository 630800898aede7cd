// A fixed team of threads for loops.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace kz {

/// Runs loops over index ranges on a fixed team. Starting a loop allocates nothing. One loop at a time: calls from
/// several threads queue up; a call from inside a loop body runs in place on that worker.
class ThreadPool {
 public:
  /// n_threads counts the calling thread: 1 starts none. 0 means one per core this process may use.
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;

  /// Calls body(begin, end, worker) for disjoint pieces that cover [0, n); pieces have `grain` indices (the last
  /// may be shorter); worker is in [0, size()). Which worker takes which piece is not defined, so a result must not
  /// depend on it. The first exception of a body is rethrown here after all pieces have ended.
  template <class Body>
  void parallel_for(int64_t n, int64_t grain, Body&& body) {
    run(n, grain, &call<std::remove_reference_t<Body>>, const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void* body, int64_t begin, int64_t end, int worker);
  template <class Body>
  static void call(void* body, int64_t begin, int64_t end, int worker) {
    (*static_cast<Body*>(body))(begin, end, worker);
  }
  void run(int64_t n, int64_t grain, Call call, void* body);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Cores this process may run on (its affinity mask), at least 1.
int available_cores();

}  // namespace kz
