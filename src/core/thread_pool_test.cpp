#include "core/thread_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <new>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/affinity.h"
#include "core/error.h"

namespace kz {
namespace {

class ThreadPoolOfSize : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolOfSize, VisitsEveryIndexOnce) {
  ThreadPool pool(GetParam());
  ASSERT_EQ(pool.size(), GetParam());
  for (const int64_t n : {0, 1, 2, 7, 64, 1000}) {
    for (const int64_t grain : {1, 3, 64, 5000}) {
      std::vector<int> visits(static_cast<size_t>(n), 0);
      pool.parallel_for(n, grain, [&](int64_t begin, int64_t end, int worker) {
        ASSERT_EQ(begin % grain, 0);
        ASSERT_EQ(end, std::min(begin + grain, n));
        ASSERT_GE(worker, 0);
        ASSERT_LT(worker, pool.size());
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
      });
      for (const int v : visits) ASSERT_EQ(v, 1) << "n " << n << " grain " << grain;
    }
  }
}

TEST_P(ThreadPoolOfSize, ManySmallLoopsSeeEachOthersWrites) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> sums(64, 0);  // plain memory: the thread sanitizer sees a missing order
  for (int round = 1; round <= 3000; ++round) {
    pool.parallel_for(64, 4, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) sums[static_cast<size_t>(i)] += i + round;
    });
    if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // lets the workers fall asleep
  }
  for (int64_t i = 0; i < 64; ++i) ASSERT_EQ(sums[static_cast<size_t>(i)], 3000 * i + 3000 * 3001 / 2);
}

TEST_P(ThreadPoolOfSize, WorkerNumbersAreExclusive) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> per_worker(static_cast<size_t>(pool.size()), 0);
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        pool.parallel_for(50, 1, [&](int64_t begin, int64_t end, int worker) {
          per_worker[static_cast<size_t>(worker)] += end - begin;
        });
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(std::accumulate(per_worker.begin(), per_worker.end(), int64_t{0}), 3 * 100 * 50);
}

TEST_P(ThreadPoolOfSize, NestedLoopRunsInPlaceOnItsWorker) {
  ThreadPool pool(GetParam());
  ThreadPool other(2);
  std::atomic<int64_t> inner{0};
  pool.parallel_for(8, 1, [&](int64_t, int64_t, int worker) {
    const std::thread::id self = std::this_thread::get_id();
    pool.parallel_for(10, 3, [&](int64_t begin, int64_t end, int w) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      EXPECT_EQ(w, worker);
      inner += end - begin;
    });
  });
  EXPECT_EQ(inner, 80);
  // Through a loop of another pool that ends on the same thread.
  inner = 0;
  pool.parallel_for(4, 1, [&](int64_t, int64_t, int worker) {
    const std::thread::id self = std::this_thread::get_id();
    other.parallel_for(1, 1, [&](int64_t, int64_t, int) {
      pool.parallel_for(5, 1, [&](int64_t begin, int64_t end, int w) {
        EXPECT_EQ(std::this_thread::get_id(), self);
        EXPECT_EQ(w, worker);
        inner += end - begin;
      });
    });
  });
  EXPECT_EQ(inner, 20);
}

TEST_P(ThreadPoolOfSize, CarriesAnExceptionToTheCallerAndGoesOn) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> inside{0};
    try {
      pool.parallel_for(100, 1, [&](int64_t begin, int64_t, int) {
        ++inside;
        if (begin % 10 == 3) {
          --inside;
          throw Error(ErrorCode::bad_file, "piece " + std::to_string(begin));
        }
        --inside;
      });
      FAIL() << "no exception";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_file);
      EXPECT_EQ(std::string(e.what()).rfind("piece ", 0), 0u);
    }
    EXPECT_EQ(inside, 0);  // no piece is still running
    int64_t count = 0;
    pool.parallel_for(1, 1, [&](int64_t, int64_t, int) { ++count; });
    EXPECT_EQ(count, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolOfSize, testing::Values(1, 2, 3, 8));

TEST(ThreadPool, SharesOutWork) {
  ThreadPool pool(3);
  // Piece 0 ends only when another thread has run piece 1: passes only if a worker takes part.
  std::atomic<bool> second{false};
  pool.parallel_for(2, 1, [&](int64_t begin, int64_t, int) {
    if (begin == 1) second = true;
    while (!second) std::this_thread::yield();
  });
  EXPECT_TRUE(second);
}

TEST(ThreadPool, ASlowWorkerLosesItsShare) {
  ThreadPool pool(2);
  std::vector<int> worker_of(64, -1);
  std::atomic<bool> others_done{false};
  std::atomic<int> done{0};
  // Whoever runs piece 40 (the second worker's share) stays there until all other pieces are done: passes only when
  // the rest of that share is taken over.
  pool.parallel_for(64, 1, [&](int64_t begin, int64_t, int worker) {
    worker_of[static_cast<size_t>(begin)] = worker;
    if (begin == 40) {
      while (!others_done) std::this_thread::yield();
    } else if (++done == 63) {
      others_done = true;
    }
  });
  EXPECT_EQ(done, 63);
  for (const int w : worker_of) EXPECT_GE(w, 0);
}

TEST(ThreadPool, BeginsWithEqualPartsInAscendingOrder) {
  ThreadPool pool(2);
  // Each of the two waits for the other before it goes on, so nobody has a reason to take over anything.
  std::vector<std::vector<int64_t>> taken(2);
  std::atomic<int> arrived{0};
  pool.parallel_for(10, 1, [&](int64_t begin, int64_t, int worker) {
    taken[static_cast<size_t>(worker)].push_back(begin);
    const int round = static_cast<int>(taken[static_cast<size_t>(worker)].size());
    ++arrived;
    while (arrived < 2 * round) std::this_thread::yield();
  });
  EXPECT_EQ(taken[0], (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(taken[1], (std::vector<int64_t>{5, 6, 7, 8, 9}));
}

TEST(ThreadPool, CallerWaitsForALongPiece) {
  ThreadPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> begun{0};
    std::vector<int> done(2, 0);
    pool.parallel_for(2, 1, [&](int64_t begin, int64_t, int worker) {
      ++begun;
      while (begun < 2) std::this_thread::yield();
      // The caller ends first and must fall asleep and be woken.
      if (worker != 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      done[static_cast<size_t>(begin)] = 1;
    });
    EXPECT_EQ(done[0] + done[1], 2);
  }
}

TEST(ThreadPool, LargeRangeDoesNotOverflow) {
  ThreadPool pool(2);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  std::atomic<int64_t> covered{0};
  pool.parallel_for(kMost, kMost / 2, [&](int64_t begin, int64_t end, int) { covered += end - begin; });
  EXPECT_EQ(covered, kMost);
}

// B177: the number of threads changes between every two calls, 10 000 times, with pauses between.
TEST(ThreadPool, ChangesOfSizeNeitherHangNorMatter) {
  constexpr int kSizes[] = {1, 8, 2, 5, 3};
  std::unique_ptr<ThreadPool> pool;
  for (int change = 0; change < 10000; ++change) {
    pool = std::make_unique<ThreadPool>(kSizes[change % 5]);
    std::array<int64_t, 37> squares{};
    pool->parallel_for(37, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) squares[static_cast<size_t>(i)] = i * i;
    });
    for (int64_t i = 0; i < 37; ++i) ASSERT_EQ(squares[static_cast<size_t>(i)], i * i) << change;
    if (change % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the workers fall asleep
  }
}

TEST(ThreadPool, RefusesAWrongSize) {
  EXPECT_THROW(ThreadPool(-1), Error);
  EXPECT_THROW(ThreadPool(100000), Error);
}

TEST(ThreadPool, ZeroMeansOnePerCore) { EXPECT_EQ(ThreadPool(0).size(), available_cores()); }

TEST(ThreadPool, RefusesAGrainOfZero) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.parallel_for(3, 0, [](int64_t, int64_t, int) {}), Error);
}

}  // namespace
}  // namespace kz
