#include "cpu/packed_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "core/error.h"
#include "cpu/cpu_backend.h"
#include "cpu/strip_loader.h"

namespace kz {
namespace {

namespace fs = std::filesystem;

/// One model file of two weights, and a folder for its cache.
class Cache : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "kz-cache-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    std::mt19937 rng(5);
    std::string content(static_cast<size_t>(3000 * row_bytes(DType::q4_0, 1024) + 40 * row_bytes(DType::q8_0, 64)), 0);
    for (char& c : content) c = static_cast<char>(rng());
    std::ofstream(root_ + "/model", std::ios::binary) << content;
    file_ = MappedFile::open(root_ + "/model");
    add("a", DType::q4_0, 1024, 3000, 0);
    add("b", DType::q8_0, 64, 40, static_cast<uint64_t>(3000 * row_bytes(DType::q4_0, 1024)));
    context_.content_key = "content";
    context_.stamp = "stamp";
  }
  void TearDown() override { fs::remove_all(root_); }

  void add(const std::string& name, DType type, int64_t cols, int64_t rows, uint64_t offset) {
    WeightSource source;
    source.name = name;
    source.tensor.data = const_cast<std::byte*>(file_.bytes().data()) + offset;
    source.tensor.dtype = type;
    source.tensor.ne = {cols, rows, 1, 1};
    source.file = &file_;
    source.offset = offset;
    sources_.push_back(source);
  }

  std::string folder() const { return root_ + "/deep/cache"; }
  size_t n_files() const {
    return fs::exists(folder()) ? static_cast<size_t>(std::distance(fs::directory_iterator(folder()), {})) : 0;
  }

  /// What a start gives: the bytes of the block, and its notes.
  std::string start(std::vector<std::string>* notes = nullptr, PackedBytes* bytes = nullptr) {
    const std::unique_ptr<Backend> backend = make_cpu_backend({2, "auto", "q8", {}, folder()});
    ImportContext context = context_;
    const std::vector<Weight> weights = backend->import_weights(sources_, context);
    if (notes != nullptr) *notes = context.notes;
    if (bytes != nullptr) *bytes = backend->packed_bytes();
    const PackedPlan p = plan();
    return {reinterpret_cast<const char*>(weights.front().data), static_cast<size_t>(p.block_bytes)};
  }

  PackedPlan plan() const {
    return plan_packing(sources_, [](const WeightSource&) { return Keeping::strips; });
  }

  std::string expected() const {
    const PackedPlan p = plan();
    std::string block(static_cast<size_t>(p.block_bytes), 0);
    ThreadPool pool(1);
    load_packed(sources_, p, pool, {}, reinterpret_cast<std::byte*>(block.data()));
    return block;
  }

  std::string cache_path() const {
    const PackedPlan p = plan();
    return PackedCache(folder(), sources_, p, context_).path();
  }

  std::string root_;
  MappedFile file_;
  std::vector<WeightSource> sources_;
  ImportContext context_;
};

TEST_F(Cache, IsMadeOnceAndMappedAfterwards) {
  std::vector<std::string> notes;
  PackedBytes bytes;
  EXPECT_EQ(start(&notes, &bytes), expected());
  EXPECT_TRUE(notes.empty()) << notes.front();
  EXPECT_EQ(bytes.in_cache, bytes.own);
  EXPECT_EQ(n_files(), 1u);
  const auto made = fs::last_write_time(cache_path());
  EXPECT_EQ(start(&notes, &bytes), expected());
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(bytes.in_cache, bytes.own);
  EXPECT_EQ(fs::last_write_time(cache_path()), made);
}

TEST_F(Cache, NothingWrongIsTrusted) {
  start();
  std::ifstream in(cache_path(), std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  const auto refuse = [&](const std::string& content, const std::string& needle) {
    std::ofstream(cache_path(), std::ios::binary) << content;
    std::vector<std::string> notes;
    EXPECT_EQ(start(&notes), expected()) << needle;
    ASSERT_EQ(notes.size(), 1u) << needle;
    EXPECT_NE(notes[0].find(needle), std::string::npos) << notes[0];
    EXPECT_EQ(notes[0].find('\n'), std::string::npos);
    EXPECT_EQ(fs::file_size(cache_path()), good.size());
    EXPECT_TRUE(start(&notes) == expected() && notes.empty());
  };
  refuse("", "is empty");
  refuse("foreign", "too short");
  refuse(std::string(good.size(), 'x'), "no such file");
  refuse(good.substr(0, good.size() - 1), "size is wrong");
  refuse(good.substr(0, good.size() / 2), "size is wrong");
  refuse(good + "more bytes", "size is wrong");
  std::mt19937 rng(1);
  for (const size_t at : {size_t{9}, size_t{30}, size_t{100}, size_t{150}, size_t{4096}, good.size() / 2,
                          good.size() - 100, good.size() - 1}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (rng() % 8)));
    refuse(bad, "made anew");
  }
}

TEST_F(Cache, BelongsToOneModelAndItsState) {
  start();
  std::vector<std::string> notes;
  context_.stamp = "written to";
  EXPECT_EQ(start(&notes), expected());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("written to"), std::string::npos);
  EXPECT_EQ(n_files(), 1u);
  context_.content_key = "another";
  start(&notes);
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(n_files(), 2u);
  context_.content_key = "";
  start(&notes);
  EXPECT_EQ(n_files(), 2u);
}

TEST_F(Cache, AFullDiskCostsOnlyTheCache) {
  struct rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  struct rlimit small = before;
  small.rlim_cur = 100000;
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  std::vector<std::string> notes;
  PackedBytes bytes;
  const std::string block = start(&notes, &bytes);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  EXPECT_EQ(block, expected());
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("no packed cache"), std::string::npos) << notes[0];
  EXPECT_EQ(bytes.in_cache, 0);
  EXPECT_EQ(n_files(), 0u);
}

TEST_F(Cache, AFolderThatCannotBeIsANote) {
  std::ofstream(root_ + "/deep") << "a file in its way";
  std::vector<std::string> notes;
  EXPECT_EQ(start(&notes), expected());
  ASSERT_EQ(notes.size(), 1u);
}

TEST_F(Cache, CancellingLeavesNothing) {
  context_.progress = [](double) { throw Error(ErrorCode::cancelled, "enough"); };
  EXPECT_THROW(start(), Error);
  EXPECT_EQ(n_files(), 0u);
}

TEST_F(Cache, SeveralAtOnceAreSafe) {
  const std::string wanted = expected();
  std::vector<std::thread> threads;
  std::atomic<int> n_right{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round) n_right += start() == wanted ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_right, 12);
  EXPECT_EQ(n_files(), 1u);
}

}  // namespace
}  // namespace kz
