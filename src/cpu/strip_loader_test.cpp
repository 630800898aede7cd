#include "cpu/strip_loader.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>

#include "core/error.h"
#include "cpu/cpu_backend.h"
#include "cpu/strip/strip.h"

namespace kz {
namespace {

namespace fs = std::filesystem;

struct Part {
  DType type;
  int64_t cols, rows;
};

/// Weights of several types, tails and sizes in two files, the second as a window; not in the order of the files.
class StripLoader : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "kz-load-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    write("a", 0, {{DType::q4_0, 1024, 4001}, {DType::q6_k, 512, 7}, {DType::f32, 96, 33}, {DType::q8_0, 96, 31}});
    write("b", 513, {{DType::q4_k, 256, 64}, {DType::iq4_nl, 512, 40}, {DType::q5_1, 64, 1000}});
    std::swap(sources_.front(), sources_.back());
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  void write(const std::string& name, uint64_t lead, const std::vector<Part>& parts) {
    std::mt19937 rng(3);
    std::string content(lead, 'x');
    std::vector<uint64_t> starts;
    for (const Part& part : parts) {
      starts.push_back(content.size() - lead);
      const auto end = content.size() + static_cast<size_t>(part.rows * row_bytes(part.type, part.cols));
      while (content.size() < end) content.push_back(static_cast<char>(rng()));
    }
    std::ofstream(path(name), std::ios::binary) << content;
    std::FILE* file = std::fopen(path(name).c_str(), "rb");
    files_.push_back(std::make_unique<MappedFile>(MappedFile::open(fileno(file), lead, 0, path(name))));
    std::fclose(file);
    for (size_t i = 0; i < parts.size(); ++i) {
      WeightSource source;
      source.name = name + std::to_string(i);
      source.tensor.data = const_cast<std::byte*>(files_.back()->bytes().data()) + starts[i];
      source.tensor.dtype = parts[i].type;
      source.tensor.ne = {parts[i].cols, parts[i].rows, 1, 1};
      source.file = files_.back().get();
      source.offset = starts[i];
      sources_.push_back(source);
    }
  }

  PackedPlan plan() const {
    return plan_packing(sources_, [](const WeightSource& source) {
      return has_strips(source.tensor.dtype) ? Keeping::strips : Keeping::copied;
    });
  }

  std::vector<std::byte> load(int n_threads) const {
    const PackedPlan p = plan();
    std::vector<std::byte> block(static_cast<size_t>(p.block_bytes));
    ThreadPool pool(n_threads);
    load_packed(sources_, p, pool, {}, block.data());
    return block;
  }

  std::string folder_;
  std::vector<std::unique_ptr<MappedFile>> files_;
  std::vector<WeightSource> sources_;
};

TEST_F(StripLoader, PutsEveryRowInItsPlace) {
  const PackedPlan p = plan();
  ASSERT_EQ(p.items.size(), sources_.size());
  for (const int n_threads : {1, 2, 5}) {
    const std::vector<std::byte> block = load(n_threads);
    int64_t end = 0;
    for (const PackedItem& item : p.items) {
      const WeightSource& source = sources_[item.source];
      const Tensor& t = source.tensor;
      EXPECT_EQ(item.place, end);
      EXPECT_EQ(item.place % 128, 0);
      end += item.size_bytes();
      std::vector<std::byte> row(static_cast<size_t>(item.row_bytes));
      for (int64_t r = 0; r < t.ne[1]; ++r) {
        const std::byte* from = block.data() + item.place;
        if (item.strips) {
          unpack_strip_row(t.dtype, from + r / kStripRows * item.unit_bytes, r % kStripRows, t.ne[0], row.data());
        } else {
          std::copy_n(from + r * item.row_bytes, row.size(), row.data());
        }
        ASSERT_EQ(std::memcmp(row.data(), t.data + r * item.row_bytes, row.size()), 0) << source.name << " row " << r;
      }
    }
    EXPECT_EQ(end, p.block_bytes);
  }
}

TEST_F(StripLoader, HandsTheSamePiecesOver) {
  const PackedPlan p = plan();
  std::vector<std::byte> block(static_cast<size_t>(p.block_bytes));
  std::mutex lock;
  int64_t n_bytes = 0;
  ThreadPool pool(3);
  load_packed(sources_, p, pool, {}, [&](int64_t place, std::span<const std::byte> bytes) {
    const std::lock_guard guard(lock);
    n_bytes += static_cast<int64_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), block.begin() + place);
  });
  EXPECT_EQ(n_bytes, p.block_bytes);
  EXPECT_EQ(block, load(1));
}

TEST_F(StripLoader, ReportsEveryPieceAndCanBeStopped) {
  const PackedPlan p = plan();
  std::vector<std::byte> block(static_cast<size_t>(p.block_bytes));
  ThreadPool alone(1);
  std::vector<double> shares;
  load_packed(sources_, p, alone, [&](double share) { shares.push_back(share); }, block.data());
  EXPECT_GE(shares.size(), p.items.size());
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_DOUBLE_EQ(shares.back(), 1);
  int n_calls = 0;
  const auto stop = [&](double) {
    if (++n_calls == 2) throw Error(ErrorCode::cancelled, "enough");
  };
  EXPECT_THROW(load_packed(sources_, p, alone, stop, block.data()), Error);
  EXPECT_EQ(n_calls, 2);
}

TEST_F(StripLoader, AFileThatBecomesShorterIsAnError) {
  fs::resize_file(path("a"), 100000);
  for (const int n_threads : {1, 3}) {
    try {
      load(n_threads);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::io);
      EXPECT_NE(std::string(error.what()).find("ends at byte 100000"), std::string::npos) << error.what();
    }
  }
}

TEST_F(StripLoader, TheBackendTakesWhatItHasKernelsForAndCopiesASmallRest) {
  const std::unique_ptr<Backend> backend = make_cpu_backend({2, "auto", "q8"});
  ImportContext context;
  const std::vector<Weight> weights = backend->import_weights(sources_, context);
  ASSERT_EQ(weights.size(), sources_.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    const bool packed = has_strips(sources_[i].tensor.dtype);
    EXPECT_EQ(weights[i].layout, packed ? WeightLayout::packed : WeightLayout::file) << weights[i].name;
    EXPECT_NE(weights[i].data, sources_[i].tensor.data) << weights[i].name;
  }
  const PackedBytes planned = backend->plan_weights(sources_), real = backend->packed_bytes();
  EXPECT_EQ(planned.own, plan().block_bytes);
  EXPECT_EQ(planned.own, real.own);
  EXPECT_EQ(planned.in_file, real.in_file);
}

}  // namespace
}  // namespace kz
