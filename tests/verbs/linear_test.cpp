// Matrix products of every block type, against the published values of the block vectors.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "verbs.h"

namespace kz::testing {
namespace {

class LinearVerb : public VerbTest {};
KZ_FOR_EVERY_BACKEND(LinearVerb);

constexpr int64_t kMostWeights = 33;
constexpr int64_t kMostRows = 17;
constexpr int64_t kColumns[] = {32, 64, 256, 2560};

template <class T>
std::vector<T> read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  std::vector<T> values(in.good() ? static_cast<size_t>(in.tellg()) / sizeof(T) : 0);
  in.seekg(0);
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  return values;
}

/// A matrix {cols, kMostWeights} made of the blocks of a vector file, and its values as that file's authors give them.
struct BlockMatrix {
  DType dtype;
  int64_t cols;
  std::vector<std::byte> bytes;
  std::vector<float> values;

  BlockMatrix(const std::string& type, int64_t n_cols) : dtype(find_dtype(type)->dtype), cols(n_cols) {
    const std::string stem = KZ_TEST_DATA "/blocks/" + type;
    const std::vector<float> all = read_all<float>(stem + ".f32");
    std::vector<std::byte> blocks = read_all<std::byte>(stem + ".quantised.bin");
    if (blocks.empty()) blocks = read_all<std::byte>(stem + ".random.bin");
    const DTypeInfo& info = dtype_info(dtype);
    const int64_t n_blocks = static_cast<int64_t>(all.size()) / info.block_elements;
    EXPECT_GT(n_blocks, 0) << type;
    EXPECT_EQ(static_cast<int64_t>(blocks.size()), n_blocks * info.block_bytes) << type;
    for (int64_t b = 0; b < kMostWeights * cols / info.block_elements; ++b) {
      const int64_t from = (b * 7 + b / n_blocks) % n_blocks;  // rows and neighbours differ
      bytes.insert(bytes.end(), blocks.begin() + from * info.block_bytes,
                   blocks.begin() + (from + 1) * info.block_bytes);
      values.insert(values.end(), all.begin() + from * info.block_elements,
                    all.begin() + (from + 1) * info.block_elements);
    }
  }
  double value(int64_t row, int64_t col) const {
    return static_cast<double>(values[static_cast<size_t>(row * cols + col)]);
  }
  Weight weight(Backend& op, int64_t rows) const {
    Tensor t;
    t.data = const_cast<std::byte*>(bytes.data());
    t.dtype = dtype;
    t.ne = {cols, rows, 1, 1};
    t.stride = {dtype_info(dtype).block_bytes, row_bytes(dtype, cols), 0, 0};
    return op.import_weight({"w", t});
  }
};

/// Every product of a matrix with x, and the sum of magnitudes behind each.
struct Expected {
  std::vector<double> sum, magnitude;
  Expected(const BlockMatrix& w, const Field& x) {
    for (int64_t r = 0; r < x.rows(); ++r) {
      for (int64_t n = 0; n < kMostWeights; ++n) {
        double total = 0, size = 0;
        for (int64_t c = 0; c < w.cols; ++c) {
          total += w.value(n, c) * x.at(c, r);
          size += std::abs(w.value(n, c) * x.at(c, r));
        }
        sum.push_back(total);
        magnitude.push_back(size);
      }
    }
  }
};

/// All types that have vectors and that this engine reads.
std::vector<std::string> block_types() {
  std::vector<std::string> types;
  std::ifstream in(KZ_TEST_DATA "/blocks/types.tsv");
  std::string line, name;
  std::getline(in, line);
  while (std::getline(in, line)) {
    name = line.substr(0, line.find('\t'));
    const DTypeInfo* info = find_dtype(name);
    if (info != nullptr && info->weights) types.push_back(name);
  }
  return types;
}

TEST(BlockTypes, EveryTypeThatTheEngineMustReadIsTested) {
  const std::vector<std::string> types = block_types();
  for (const char* name : {"F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
                           "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"}) {
    EXPECT_NE(std::find(types.begin(), types.end(), name), types.end()) << name;
  }
}

TEST_P(LinearVerb, EveryTypeWidthAndRowCount) {
  for (const std::string& type : block_types()) {
    for (const int64_t cols : kColumns) {
      if (cols % find_dtype(type)->block_elements != 0) continue;
      const BlockMatrix w(type, cols);
      const Field x = Field(cols, kMostRows).fill(static_cast<uint32_t>(cols));
      const Expected expected(w, x);
      Worst worst;
      for (int64_t n = 1; n <= kMostWeights; ++n) {
        const int64_t rows = (n * 5 + cols / 32) % kMostRows + 1;  // over all widths every pairing class occurs
        Field out(n, rows);
        op().linear(rows_of(x.tensor(), 0, rows), w.weight(op(), n), out.tensor());
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t i = 0; i < n; ++i) {
            const auto at = static_cast<size_t>(r * kMostWeights + i);
            worst.see(std::as_const(out).at(i, r), expected.sum[at],
                      tolerance(expected.sum[at], static_cast<double>(cols), expected.magnitude[at]), r, i);
          }
        }
        ASSERT_TRUE(out.guards_intact()) << type << ", " << cols << " x " << n << ", rows " << rows;
      }
      EXPECT_TRUE(worst.within_bounds()) << type << ", " << cols << " columns";
    }
  }
}

// B153: rows that do not fill a tile must not be computed from their neighbours' memory.
TEST_P(LinearVerb, EveryWeightAndRowCountGivesTheBitsOfTheWholeProduct) {
  for (const int64_t cols : kColumns) {
    const BlockMatrix w("Q8_0", cols);
    const Field x = Field(cols, kMostRows).fill(7);
    Field whole(kMostWeights, kMostRows);
    op().linear(x.tensor(), w.weight(op(), kMostWeights), whole.tensor());
    const int64_t step = cols > 256 ? 4 : 1;
    for (int64_t n = 1; n <= kMostWeights; n += step) {
      for (int64_t rows = 1; rows <= kMostRows; ++rows) {
        Field out(n, rows);
        op().linear(rows_of(x.tensor(), kMostRows - rows, rows), w.weight(op(), n), out.tensor());
        int64_t different = 0;
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t i = 0; i < n; ++i) {
            different += std::as_const(out).at(i, r) != std::as_const(whole).at(i, kMostRows - rows + r);
          }
        }
        ASSERT_EQ(different, 0) << cols << " x " << n << ", rows " << rows;
        ASSERT_TRUE(out.guards_intact());
      }
    }
  }
}

// B153 at the width of the widest layers.
TEST_P(LinearVerb, TailsOfWideProducts) {
  constexpr int64_t kWide = 9728;
  const BlockMatrix w("Q8_0", kWide);
  const Field x = Field(kWide, 3).fill(7);
  Field whole(kMostWeights, 3);
  op().linear(x.tensor(), w.weight(op(), kMostWeights), whole.tensor());
  for (const int64_t n : {1, 3, 7, 15, 17, 31, 33}) {
    for (int64_t rows = 1; rows <= 3; ++rows) {
      Field out(n, rows);
      op().linear(rows_of(x.tensor(), 3 - rows, rows), w.weight(op(), n), out.tensor());
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(std::as_const(out).at(i, r), std::as_const(whole).at(i, 3 - rows + r)) << n << " x " << rows;
        }
      }
      ASSERT_TRUE(out.guards_intact());
    }
  }
}

TEST_P(LinearVerb, Float32WeightsAndOddWidths) {
  for (const int64_t cols : {1, 3, 31, 33, 80, 576, 1000}) {
    for (int64_t rows = 1; rows <= kMostRows; rows += 3) {
      const Field w = Field(cols, 5, 0).fill(3), x = Field(cols, rows).fill(4), bias = Field(5, 1).fill(5, 10.0f);
      const Weight weight = op().import_weight({"w", w.tensor()});
      Field out(5, rows), biased(5, rows);
      op().linear(x.tensor(), weight, out.tensor());
      op().linear(x.tensor(), weight, biased.tensor(), bias.tensor());
      Worst worst;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t n = 0; n < 5; ++n) {
          double sum = 0, magnitude = 0;
          for (int64_t c = 0; c < cols; ++c) {
            sum += w.at(c, n) * x.at(c, r);
            magnitude += std::abs(w.at(c, n) * x.at(c, r));
          }
          const auto operations = static_cast<double>(cols + 1);
          worst.see(std::as_const(out).at(n, r), sum, tolerance(sum, operations, magnitude), r, n);
          sum += bias.at(n, 0);
          magnitude += std::abs(bias.at(n, 0));
          worst.see(std::as_const(biased).at(n, r), sum, tolerance(sum, operations, magnitude), r, n);
        }
      }
      EXPECT_TRUE(worst.within_bounds()) << cols << " columns, " << rows << " rows";
      EXPECT_TRUE(out.guards_intact());
    }
  }
}

TEST_P(LinearVerb, ManyProductsOfOneActivationAreThoseOfEachAlone) {
  const BlockMatrix a("Q4_0", 256), b("Q6_K", 256), c("F16", 256);
  for (int64_t rows = 1; rows <= kMostRows; rows += 4) {
    const Field x = Field(256, rows).fill(8), bias = Field(33, 1).fill(9);
    const Weight wa = a.weight(op(), 33), wb = b.weight(op(), 7), wc = c.weight(op(), 1);
    Field oa(33, rows), ob(7, rows), oc(1, rows), sa(33, rows), sb(7, rows), sc(1, rows);
    const Product products[] = {{&wa, oa.tensor(), bias.tensor()}, {&wb, ob.tensor(), {}}, {&wc, oc.tensor(), {}}};
    op().linear_many(x.tensor(), products);
    op().linear(x.tensor(), wa, sa.tensor(), bias.tensor());
    op().linear(x.tensor(), wb, sb.tensor());
    op().linear(x.tensor(), wc, sc.tensor());
    EXPECT_TRUE(oa.same_rows(0, sa, 0, rows));
    EXPECT_TRUE(ob.same_rows(0, sb, 0, rows));
    EXPECT_TRUE(oc.same_rows(0, sc, 0, rows));
  }
}

// The result of a worker must not depend on who else works.
TEST_P(LinearVerb, ThreadCountDoesNotChangeTheBits) {
  const BlockMatrix w("Q4_K", 256);
  const Field x = Field(256, 9).fill(8);
  Field out(kMostWeights, 9);
  op().linear(x.tensor(), w.weight(op(), kMostWeights), out.tensor());
  for (const int n_threads : {1, 3, 8}) {
    auto other = open_backend(GetParam(), n_threads);
    other->reserve(limits());
    Field again(kMostWeights, 9);
    other->linear(x.tensor(), w.weight(*other, kMostWeights), again.tensor());
    EXPECT_TRUE(out.same_rows(0, again, 0, 9)) << n_threads << " threads";
  }
}

}  // namespace
}  // namespace kz::testing
