#include "core/affinity.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/thread_pool.h"

namespace kz {
namespace {

std::vector<int> allowed_cores() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

TEST(Affinity, AvailableCoresFollowTheMask) {
  const std::vector<int> cores = allowed_cores();
  EXPECT_EQ(available_cores(), static_cast<int>(cores.size()));
  std::thread([&] {  // the mask belongs to the thread: this one's end undoes it
    pin_this_thread(cores.front());
    EXPECT_EQ(available_cores(), 1);
  })
      .join();
}

TEST(Affinity, APinnedThreadRunsThere) {
  for (const int core : allowed_cores()) {
    std::thread([&] {
      pin_this_thread(core);
      EXPECT_EQ(sched_getcpu(), core);
    }).join();
  }
}

TEST(Affinity, PinnedWhileGivesTheMaskBack) {
  const std::vector<int> before = allowed_cores();
  {
    const PinnedWhile pinned(before.back());
    EXPECT_EQ(allowed_cores(), std::vector<int>{before.back()});
  }
  EXPECT_EQ(allowed_cores(), before);
}

TEST(Affinity, ForbiddenCoresAreNamed) {
  const std::vector<int> cores{allowed_cores().front(), 100000};
  try {
    check_cores(cores);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_argument);
    EXPECT_NE(std::string(e.what()).find("found 100000"), std::string::npos) << e.what();
  }
  EXPECT_THROW(check_cores(std::vector<int>{-1}), Error);
  EXPECT_THROW(ThreadPool(2, std::vector<int>{-1}), Error);
}

TEST(Affinity, WorkersStayOnTheirCores) {
  const std::vector<int> cores = allowed_cores();
  ThreadPool pool(3, cores);
  for (int round = 0; round < 50; ++round) {
    pool.parallel_for(64, 1, [&](int64_t, int64_t, int worker) {
      if (worker > 0) {
        ASSERT_EQ(sched_getcpu(), cores[static_cast<size_t>(worker) % cores.size()]);
      }
    });
  }
  EXPECT_EQ(allowed_cores(), cores);  // the caller is where it was
}

}  // namespace
}  // namespace kz
