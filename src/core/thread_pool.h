// A fixed team of threads for loops.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

namespace kz {

/// Runs loops over index ranges on a fixed team. Starting a loop allocates nothing. One loop at a time: calls from
/// several threads queue up; a call from inside a loop body runs in place on that worker. Workers look for the next
/// loop for some tens of microseconds and sleep then: an idle pool costs nothing.
class ThreadPool {
 public:
  /// n_threads counts the calling thread: 1 starts none. 0 means one per core this process may use. With `cores`,
  /// worker w stays on core cores[w mod size]; the calling thread (worker 0) is its owner's to place (core/affinity.h).
  /// Throws Error(bad_argument) for a core that this process may not use.
  explicit ThreadPool(int n_threads, std::span<const int> cores = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;

  /// Calls body(begin, end, worker) for disjoint pieces that cover [0, n); pieces have `grain` indices (the last
  /// may be shorter); worker is in [0, size()). Each worker begins with an equal part of neighbouring pieces and takes
  /// them in ascending order; who has none left takes over half of another's. So a result must not depend on who does
  /// what. The first exception of a body is rethrown here after all pieces have ended.
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

}  // namespace kz
