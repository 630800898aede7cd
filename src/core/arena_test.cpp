#include "core/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <limits>

#include "core/error.h"

namespace kz {
namespace {

size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

class ArenaOfKind : public testing::TestWithParam<MemoryKind> {};

TEST_P(ArenaOfKind, IsAlignedZeroedAndRounded) {
  const Arena arena("weights", page() + 1, GetParam());
  EXPECT_EQ(arena.size_bytes(), 2 * page());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.data()) % page(), 0u);
  EXPECT_EQ(arena.name(), "weights");
  EXPECT_EQ(arena.kind(), GetParam());
  EXPECT_EQ(arena.fd() >= 0, GetParam() == MemoryKind::memfd);
  for (size_t i = 0; i < arena.size_bytes(); ++i) ASSERT_EQ(arena.data()[i], std::byte{0});
  std::memset(arena.data(), 7, arena.size_bytes());
}

TEST_P(ArenaOfKind, AnEmptyOneIsNothing) {
  const Arena arena("none", 0, GetParam());
  EXPECT_EQ(arena.data(), nullptr);
  EXPECT_EQ(arena.size_bytes(), 0u);
}

TEST_P(ArenaOfKind, DiscardZeroesWholePagesOnly) {
  Arena arena("kv", 4 * page(), GetParam());
  std::memset(arena.data(), 1, arena.size_bytes());
  arena.discard(1, 2 * page());  // holds one whole page: the second
  for (size_t i = 0; i < arena.size_bytes(); ++i) {
    const bool second = i / page() == 1;
    ASSERT_EQ(arena.data()[i], std::byte{second ? uint8_t{0} : uint8_t{1}}) << i;
  }
  arena.discard(10, 20);
  EXPECT_EQ(arena.data()[10], std::byte{1});
  EXPECT_THROW(arena.discard(4 * page(), 1), Error);
  EXPECT_THROW(arena.discard(1, std::numeric_limits<size_t>::max()), Error);
}

TEST_P(ArenaOfKind, ReservesMoreThanTheMachineHas) {
  // Address space only: 64 GiB, of which one page at each end is touched.
  const Arena arena("kv", size_t{1} << 36, GetParam());
  arena.data()[0] = std::byte{1};
  arena.data()[arena.size_bytes() - 1] = std::byte{2};
  EXPECT_EQ(arena.data()[arena.size_bytes() - 1], std::byte{2});
}

TEST_P(ArenaOfKind, TooMuchIsAnErrorWithNameAndSize) {
  for (const size_t size_bytes : {std::numeric_limits<size_t>::max(), size_t{1} << 62}) {
    try {
      const Arena arena("scratch", size_bytes, GetParam());
      FAIL() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::out_of_memory);
      const std::string message = e.what();
      EXPECT_NE(message.find("scratch"), std::string::npos) << message;
      EXPECT_NE(message.find(std::to_string(size_bytes)), std::string::npos) << message;
    }
  }
}

TEST_P(ArenaOfKind, Moves) {
  Arena a("a", page(), GetParam());
  Arena b("b", page(), GetParam());
  b.data()[5] = std::byte{9};
  std::byte* place = b.data();
  a = std::move(b);
  EXPECT_EQ(a.data(), place);
  EXPECT_EQ(a.name(), "b");
  EXPECT_EQ(b.data(), nullptr);  // NOLINT(bugprone-use-after-move): emptied on purpose
  const Arena c(std::move(a));
  EXPECT_EQ(c.data()[5], std::byte{9});
  EXPECT_EQ(c.fd() >= 0, GetParam() == MemoryKind::memfd);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ArenaOfKind, testing::Values(MemoryKind::anonymous, MemoryKind::memfd));

TEST(MemfdArena, CanBeMappedASecondTime) {
  const Arena arena("weights", page(), MemoryKind::memfd);
  void* second = mmap(nullptr, page(), PROT_READ, MAP_SHARED, arena.fd(), 0);
  ASSERT_NE(second, MAP_FAILED);
  arena.data()[3] = std::byte{42};
  EXPECT_EQ(static_cast<std::byte*>(second)[3], std::byte{42});
  munmap(second, page());
}

TEST(Scratch, MeasuresWhatItLaterHandsOut) {
  const std::pair<int64_t, int64_t> shapes[] = {{1, 1}, {16, 1}, {17, 3}, {0, 5}, {1000, 7}};
  Scratch measure;
  EXPECT_TRUE(measure.measuring());
  for (const auto& [cols, rows] : shapes) EXPECT_TRUE(measure.take(cols, rows).empty());
  const size_t need = measure.used_bytes();
  EXPECT_EQ(need % 64, 0u);

  const Arena arena("scratch", need);
  Scratch scratch(arena.data(), need);
  for (int round = 0; round < 2; ++round) {
    std::byte* end = arena.data();
    for (const auto& [cols, rows] : shapes) {
      const Tensor t = scratch.take(cols, rows);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data) % 64, 0u);
      EXPECT_GE(t.data, end);  // no overlap with the one before
      end = t.data + 4 * cols * rows;
      EXPECT_EQ(t.ne[0], cols);
      EXPECT_EQ(t.ne[1], rows);
      EXPECT_EQ(t.stride[1], 4 * cols);
      EXPECT_EQ(t.dtype, DType::f32);
    }
    EXPECT_LE(end, arena.data() + need);
    EXPECT_EQ(scratch.used_bytes(), need);
    try {
      scratch.take(1, 1);
      FAIL() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::internal);
    }
    EXPECT_EQ(scratch.used_bytes(), need);
    scratch.reset();
    EXPECT_EQ(scratch.used_bytes(), 0u);
  }
}

TEST(Scratch, RefusesImpossibleShapes) {
  Scratch measure;
  EXPECT_THROW(measure.take(-1, 1), Error);
  EXPECT_THROW(measure.take(int64_t{1} << 40, int64_t{1} << 40), Error);
}

}  // namespace
}  // namespace kz
