// The KV cache and softmax attention, across block borders, head groupings and KV types.
#include <algorithm>
#include <cmath>

#include "backend/key_rows.h"
#include "core/blocks.h"
#include "core/half.h"
#include "verbs.h"

namespace kz::testing {
namespace {

struct Shape {
  int64_t heads, kv_heads, key_dim, value_dim;
};

/// What a KV type keeps of a row.
void through_type(DType type, Field& x, int64_t dim) {
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t first = 0; first < x.cols(); first += dim) {
      float* row = &x.at(first, r);
      if (type == DType::f16) {
        for (int64_t i = 0; i < dim; ++i) row[i] = f16_to_f32(f32_to_f16(row[i]));
      } else if (type == DType::q8_0) {
        std::vector<std::byte> bytes(static_cast<size_t>(row_bytes(type, dim)));
        quantise_row(type, row, bytes.data(), dim);
        dequantise_row(type, bytes.data(), row, dim);
      }
    }
  }
}

/// Takes the first row off every row and rotates (sign -1), or rotates and adds it again (sign 1).
void rotate_keys(Field& keys, const Field& original, int64_t dim, float sign) {
  for (int64_t r = 0; r < keys.rows(); ++r) {
    for (int64_t first = 0; first < keys.cols(); first += dim) {
      const auto add_centre = [&] {
        for (int64_t i = first; i < first + dim; ++i) keys.at(i, r) += sign * original.at(i, 0);
      };
      if (sign < 0) add_centre();
      rotate_features(&keys.at(first, r), dim);
      if (sign > 0) add_centre();
    }
  }
}

/// One sequence's queries, keys and values, and what attention must make of them.
struct Sequence {
  Shape shape;
  int64_t n;
  DType type;
  float scale;
  Field q, k, v;

  Sequence(const Shape& s, int64_t n_rows, DType kv_type, float spread = 1.0f)
      : shape(s),
        n(n_rows),
        type(kv_type),
        scale(1.0f / std::sqrt(static_cast<float>(s.key_dim))),
        q(s.heads * s.key_dim, n_rows),
        k(s.kv_heads * s.key_dim, n_rows),
        v(s.kv_heads * s.value_dim, n_rows) {
    q.fill(41, spread);
    k.fill(42);
    v.fill(43, 1.0f, 0.3f);
  }
  StateLayout layout() const {  // the second layer is the one in use: layers must not be mixed up
    return {{{1, 32, 32}, {shape.kv_heads, shape.key_dim, shape.value_dim}}, {}};
  }

  /// Appends and attends in pieces of the given lengths.
  void run(Backend& op, State& state, const std::vector<int64_t>& pieces, Field& out) const {
    int64_t done = 0;
    for (const int64_t piece : pieces) {
      Batch batch;
      batch.add(state, piece);
      op.append(rows_of(k.heads(shape.kv_heads), done, piece), rows_of(v.heads(shape.kv_heads), done, piece), 1,
                batch.rows());
      op.attention(rows_of(q.heads(shape.heads), done, piece), scale, 1, batch.rows(),
                   rows_of(out.heads(shape.heads), done, piece));
      batch.commit();
      done += piece;
    }
    ASSERT_EQ(done, n);
  }
};

/// Softmax attention as the formula has it; group(h) names the KV head of a query head.
template <class Group, class Tolerance>
Worst compare(const Sequence& s, const Field& out, Group group, Tolerance tolerance) {
  Field keys = s.k, values = s.v;
  const bool is_rotated = s.type == DType::q8_0;  // the definition of backend/key_rows.h
  if (is_rotated) rotate_keys(keys, s.k, s.shape.key_dim, -1.0f);
  through_type(s.type, keys, s.shape.key_dim);
  if (is_rotated) rotate_keys(keys, s.k, s.shape.key_dim, 1.0f);
  through_type(s.type, values, s.shape.value_dim);
  const Field &k = keys, &v = values;
  const int64_t dk = s.shape.key_dim, dv = s.shape.value_dim;
  Worst worst;
  std::vector<double> score(static_cast<size_t>(s.n));
  for (int64_t t = 0; t < s.n; ++t) {
    for (int64_t h = 0; h < s.shape.heads; ++h) {
      const int64_t g = group(h);
      double top = -1e300, low = 1e300, dot_size = 0, total = 0;
      for (int64_t u = 0; u <= t; ++u) {
        double sum = 0, size = 0;
        for (int64_t i = 0; i < dk; ++i) {
          sum += s.q.at(h * dk + i, t) * k.at(g * dk + i, u);
          size += std::abs(s.q.at(h * dk + i, t) * k.at(g * dk + i, u));
        }
        score[static_cast<size_t>(u)] = sum * static_cast<double>(s.scale);
        top = std::max(top, score[static_cast<size_t>(u)]);
        low = std::min(low, score[static_cast<size_t>(u)]);
        dot_size = std::max(dot_size, size * static_cast<double>(s.scale));
      }
      for (int64_t u = 0; u <= t; ++u) total += std::exp(score[static_cast<size_t>(u)] - top);
      // A score is off by at most (Dk + 2) roundings of its terms, its distance to the largest by two more; a weight
      // by as much relatively (numerator and sum: twice), plus exponential, sum, merges of blocks and division.
      const double operations =
          2 * (static_cast<double>(dk + 2) * dot_size + 2 * (top - low) + std::abs(top)) + static_cast<double>(t) + 24;
      for (int64_t j = 0; j < dv; ++j) {
        double expected = 0, magnitude = 0;
        for (int64_t u = 0; u <= t; ++u) {
          const double p = std::exp(score[static_cast<size_t>(u)] - top) / total;
          expected += p * v.at(g * dv + j, u);
          magnitude += p * std::abs(v.at(g * dv + j, u));
        }
        worst.see(out.at(h * dv + j, t), expected, tolerance(expected, operations, magnitude), t, h * dv + j);
      }
    }
  }
  return worst;
}

class AttentionVerb : public VerbTest {
 protected:
  auto bound() const {
    return [this](double expected, double operations, double magnitude) {
      return tolerance(expected, operations, magnitude);
    };
  }
  void expect_right(const Shape& shape, int64_t n, DType type, const std::vector<int64_t>& pieces,
                    float spread = 1.0f) {
    const Sequence s(shape, n, type, spread);
    auto state = new_state(s.layout(), 2048, type);
    Field out(shape.heads * shape.value_dim, n);
    s.run(op(), *state, pieces, out);
    const int64_t heads_per_group = shape.heads / shape.kv_heads;
    EXPECT_TRUE(compare(
                    s, out, [&](int64_t h) { return h / heads_per_group; }, bound())
                    .within_bounds())
        << shape.heads << "/" << shape.kv_heads << " heads, Dk " << shape.key_dim << ", Dv " << shape.value_dim
        << ", n " << n << ", " << dtype_name(type) << ", pieces of " << pieces.front();
    EXPECT_TRUE(out.guards_intact());
  }
};
KZ_FOR_EVERY_BACKEND(AttentionVerb);

TEST_P(AttentionVerb, RowCounts) {
  for (int64_t n = 1; n <= 17; ++n) expect_right({4, 2, 32, 32}, n, DType::f32, {n});
}

TEST_P(AttentionVerb, HeadGroupings) {
  for (const Shape& shape : {Shape{1, 1, 64, 64},
                             {9, 3, 64, 64},
                             {14, 2, 64, 64},
                             {8, 8, 32, 32},
                             {16, 4, 256, 256},
                             {6, 2, 32, 64},
                             {5, 1, 20, 12},
                             {3, 3, 33, 7}}) {
    expect_right(shape, 21, DType::f32, {21});
  }
}

TEST_P(AttentionVerb, AcrossBlockBorders) {
  for (const int64_t n : {255, 256, 257, 513}) {
    expect_right({2, 1, 32, 32}, n, DType::f32, {n});
    expect_right({2, 1, 32, 32}, n, DType::f32, {n - 1, 1});  // a prompt and one decoded token
  }
}

TEST_P(AttentionVerb, PiecesThatStraddleABorder) {
  expect_right({2, 1, 32, 32}, 270, DType::f32, {254, 1, 1, 1, 13});
  expect_right({2, 1, 32, 32}, 270, DType::f32, {250, 20});
}

TEST_P(AttentionVerb, KvTypes) {
  for (const DType type : {DType::f16, DType::q8_0}) {
    expect_right({4, 2, 64, 64}, 40, type, {7, 33});
    expect_right({2, 1, 32, 96}, 258, type, {256, 2});
  }
}

// Scores in the thousands: the largest must be taken out before the exponential.
TEST_P(AttentionVerb, LargeScores) { expect_right({2, 1, 64, 64}, 300, DType::f32, {100, 200}, 600.0f); }

// The test must be able to tell h / (H / K) from h mod K.
TEST_P(AttentionVerb, ConfusedHeadGroupsWouldFail) {
  const Sequence s({6, 3, 32, 32}, 9, DType::f32);
  auto state = new_state(s.layout());
  Field out(6 * 32, 9);
  s.run(op(), *state, {9}, out);
  EXPECT_LT(compare(s, out, [](int64_t h) { return h / 2; }, bound()).ratio(), 1.0);
  EXPECT_GT(compare(s, out, [](int64_t h) { return h % 3; }, bound()).ratio(), 100.0);
}

// Qwen3.5: queries of gated attention are every other head of one product.
TEST_P(AttentionVerb, QueriesOfEveryOtherHead) {
  constexpr int64_t kDim = 32, kHeads = 4, kRows = 6;
  const Sequence s({kHeads, 2, kDim, kDim}, kRows, DType::f32);
  Field mixed = Field(2 * kDim * kHeads, kRows).fill(44, 100.0f);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kDim * kHeads; ++c) {
      mixed.at(c / kDim * 2 * kDim + c % kDim, r) = static_cast<float>(s.q.at(c, r));
    }
  }
  auto state = new_state(s.layout()), other = new_state(s.layout());
  Field expected(kDim * kHeads, kRows), out(kDim * kHeads, kRows);
  s.run(op(), *state, {kRows}, expected);
  Batch batch;
  batch.add(*other, kRows);
  op().append(s.k.heads(2), s.v.heads(2), 1, batch.rows());
  op().attention(heads_view(mixed.tensor(), 0, kDim, kHeads, 2 * kDim), s.scale, 1, batch.rows(), out.heads(kHeads));
  EXPECT_TRUE(out.same_rows(0, expected, 0, kRows));
}

// A row's bits must not depend on how its sequence was cut.
TEST_P(AttentionVerb, AnyCuttingGivesTheSameBits) {
  for (const DType type : {DType::f32, DType::q8_0}) {
    const Sequence s({4, 2, 32, 32}, 300, type);
    auto state = new_state(s.layout(), 2048, type);
    Field whole(4 * 32, 300);
    s.run(op(), *state, {300}, whole);
    for (const int64_t length : {1, 7, 64, 150, 256}) {
      std::vector<int64_t> pieces;
      for (int64_t done = 0; done < 300; done += length) pieces.push_back(std::min(length, 300 - done));
      auto other = new_state(s.layout(), 2048, type);
      Field out(4 * 32, 300);
      s.run(op(), *other, pieces, out);
      EXPECT_TRUE(out.same_rows(0, whole, 0, 300)) << dtype_name(type) << ", pieces of " << length;
    }
  }
}

TEST_P(AttentionVerb, CutSequencesForgetWhatLayBehind) {
  const Sequence s({4, 2, 32, 32}, 300, DType::f32);
  auto state = new_state(s.layout());
  Field first(4 * 32, 300), again(4 * 32, 300);
  s.run(op(), *state, {300}, first);
  state->cut_to(0);
  s.run(op(), *state, {300}, again);
  EXPECT_TRUE(first.same_rows(0, again, 0, 300));
  state->cut_to(250);  // other rows, then the old ones again
  Batch other;
  other.add(*state, 50);
  op().append(rows_of(s.k.heads(2), 0, 50), rows_of(s.v.heads(2), 0, 50), 1, other.rows());
  other.commit();
  state->cut_to(250);
  Batch batch;
  batch.add(*state, 50);
  op().append(rows_of(s.k.heads(2), 250, 50), rows_of(s.v.heads(2), 250, 50), 1, batch.rows());
  op().attention(rows_of(s.q.heads(4), 250, 50), s.scale, 1, batch.rows(), rows_of(again.heads(4), 250, 50));
  EXPECT_TRUE(first.same_rows(250, again, 250, 50));
}

}  // namespace
}  // namespace kz::testing
