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

std::vector<int> mask_of_this_thread() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

TEST(Affinity, AvailableCoresFollowTheMask) {
  EXPECT_EQ(allowed_cores(), mask_of_this_thread());
  const std::vector<int> cores = mask_of_this_thread();
  EXPECT_EQ(available_cores(), static_cast<int>(cores.size()));
  std::thread([&] {  // the mask belongs to the thread: this one's end undoes it
    pin_this_thread(cores.front());
    EXPECT_EQ(available_cores(), 1);
  })
      .join();
}

TEST(Affinity, APinnedThreadRunsThere) {
  for (const int core : mask_of_this_thread()) {
    std::thread([&] {
      pin_this_thread(core);
      EXPECT_EQ(sched_getcpu(), core);
    }).join();
  }
}

TEST(Affinity, PinnedWhileGivesTheMaskBack) {
  const std::vector<int> before = mask_of_this_thread();
  {
    const PinnedWhile pinned(before.back());
    EXPECT_EQ(mask_of_this_thread(), std::vector<int>{before.back()});
  }
  EXPECT_EQ(mask_of_this_thread(), before);
}

TEST(Affinity, ForbiddenCoresAreNamed) {
  const std::vector<int> cores{mask_of_this_thread().front(), 100000};
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
  const std::vector<int> cores = mask_of_this_thread();
  ThreadPool pool(3, cores);
  for (int round = 0; round < 50; ++round) {
    pool.parallel_for(64, 1, [&](int64_t, int64_t, int worker) {
      if (worker > 0) {
        ASSERT_EQ(sched_getcpu(), cores[static_cast<size_t>(worker) % cores.size()]);
      }
    });
  }
  EXPECT_EQ(mask_of_this_thread(), cores);  // the caller is where it was
}

}  // namespace
}  // namespace kz
