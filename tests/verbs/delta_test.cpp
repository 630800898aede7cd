// The gated delta rule, token by token and in chunks, against matrices in double.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "verbs.h"

namespace kz::testing {
namespace {

struct Shape {
  int64_t key_heads, value_heads, size;
};

using Matrix = std::vector<double>;  // S x S, [value][key]

/// Inputs of one sequence; the state starts with random values, as after many tokens.
struct Sequence {
  Shape shape;
  int64_t n;
  Field q, k, v, g, beta;

  Sequence(const Shape& s, int64_t n_rows)
      : shape(s),
        n(n_rows),
        q(s.key_heads * s.size, n),
        k(s.key_heads * s.size, n),
        v(s.value_heads * s.size, n),
        g(s.value_heads, n),
        beta(s.value_heads, n) {
    q.fill(61, 3.0f);
    k.fill(62, 0.5f, 0.2f);  // keys that overlap: the chunk's linear system is far from the identity
    v.fill(63, 2.0f);
    beta.fill(64, 2.0f);
    g.fill(65, 1.0f);
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t h = 0; h < s.value_heads; ++h) g.at(h, r) = -std::exp(2.0f * g.at(h, r) - 3.0f);
    }
  }
  StateLayout layout() const {  // the second layer is the one in use
    const int64_t channels = (2 * shape.key_heads + shape.value_heads) * shape.size;
    return {{}, {{1, 8, 24, 3}, {shape.value_heads, shape.size, channels, 3}}};
  }
  int64_t state_floats() const { return shape.value_heads * shape.size * shape.size; }
  std::unique_ptr<State> start() const {
    auto state = new_state(layout(), 1 << 20);
    const Field values = Field(state_floats(), 1).fill(66, 0.3f);
    for (int64_t i = 0; i < state_floats(); ++i) state->delta_state(1)[i] = static_cast<float>(values.at(i, 0));
    return state;
  }

  Field run(Backend& op, State& state, DeltaForm form, const std::vector<int64_t>& pieces) const {
    Field out(shape.value_heads * shape.size, n);
    int64_t done = 0;
    for (const int64_t piece : pieces) {
      Batch batch;
      batch.add(state, piece);
      const auto part = [&](const Field& x, int64_t heads) { return rows_of(x.heads(heads), done, piece); };
      op.delta_rule(part(q, shape.key_heads), part(k, shape.key_heads), part(v, shape.value_heads),
                    rows_of(g.tensor(), done, piece), rows_of(beta.tensor(), done, piece),
                    {shape.key_heads, shape.value_heads, shape.size, form}, 1, batch.rows(),
                    part(out, shape.value_heads));
      batch.commit();
      done += piece;
    }
    EXPECT_EQ(done, n);
    EXPECT_TRUE(out.guards_intact());
    return out;
  }
};

std::vector<double> normalised(const Field& x, int64_t head, int64_t size, int64_t row) {
  std::vector<double> y(static_cast<size_t>(size));
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += x.at(head * size + i, row) * x.at(head * size + i, row);
  for (int64_t i = 0; i < size; ++i) y[static_cast<size_t>(i)] = x.at(head * size + i, row) / std::sqrt(sum + 1e-6);
  return y;
}

double norm(const double* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return std::sqrt(sum);
}

/// The exact answer, and for every value how far rounding may carry it.
struct Exact {
  std::vector<double> out, out_error;      // [row][value head * S + value]
  std::vector<double> state, state_error;  // [value head][value][key]; the error is the norm of a whole row

  /// `rounding` is that of the arithmetic between stores (the states are stored in float by every backend).
  /// An error of a row of M shrinks by the decay and by (I - beta k k^T), so it never grows; every token adds the
  /// rounding of the store and, for each of its two reads and its write, about S roundings of the row's norm.
  template <class KeyHead>
  Exact(const Sequence& s, const State& start, double rounding, KeyHead key_head) {
    const int64_t size = s.shape.size, heads = s.shape.value_heads;
    const double operations = 3.0 * static_cast<double>(size) + 48, scale = 1.0 / std::sqrt(static_cast<double>(size));
    for (int64_t i = 0; i < s.state_floats(); ++i) state.push_back(static_cast<double>(start.delta_state(1)[i]));
    state_error.assign(static_cast<size_t>(heads * size), 0.0);
    for (int64_t t = 0; t < s.n; ++t) {
      for (int64_t h = 0; h < heads; ++h) {
        const std::vector<double> q = normalised(s.q, key_head(h), size, t), k = normalised(s.k, key_head(h), size, t);
        const double decay = std::exp(s.g.at(h, t)), strength = sigmoid(s.beta.at(h, t));
        for (int64_t j = 0; j < size; ++j) {
          double* m = &state[static_cast<size_t>((h * size + j) * size)];
          double& error = state_error[static_cast<size_t>(h * size + j)];
          const double before = decay * norm(m, size);
          double read = 0, value = 0;
          for (int64_t i = 0; i < size; ++i) read += decay * m[i] * k[static_cast<size_t>(i)];
          const double v = s.v.at(h * size + j, t), delta = strength * (v - read);
          for (int64_t i = 0; i < size; ++i) m[i] = decay * m[i] + delta * k[static_cast<size_t>(i)];
          for (int64_t i = 0; i < size; ++i) value += m[i] * q[static_cast<size_t>(i)];
          const double after = norm(m, size);
          error = decay * error + 2 * 0x1p-24 * after + operations * rounding * (before + after + std::abs(v));
          out.push_back(scale * value);
          out_error.push_back(0x1p-24 * std::abs(scale * value) + scale * (error + operations * rounding * after) +
                              1e-30);
        }
      }
    }
    for (double& error : state_error) error += 1e-30;
  }

  Worst compare_out(const Field& actual) const {
    Worst worst;
    const int64_t n = actual.rows(), d = actual.cols();
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c < d; ++c) {
        const auto at = static_cast<size_t>(r * d + c);
        worst.see(actual.at(c, r), out[at], out_error[at], r, c);
      }
    }
    return worst;
  }
  Worst compare_state(const State& actual, int64_t size) const {
    Worst worst;
    for (size_t i = 0; i < state.size(); ++i) {
      const auto row = static_cast<int64_t>(i) / size;
      worst.see(static_cast<double>(actual.delta_state(1)[i]), state[i], state_error[static_cast<size_t>(row)], row,
                static_cast<int64_t>(i) % size);
    }
    return worst;
  }
  /// sqrt(sum of squared differences / sum of squares), the measure of the field case on chunked forms.
  double relative_out(const Field& actual) const {
    double off = 0, all = 0;
    const int64_t d = actual.cols();
    for (size_t i = 0; i < out.size(); ++i) {
      const double x = actual.at(static_cast<int64_t>(i) % d, static_cast<int64_t>(i) / d);
      off += (x - out[i]) * (x - out[i]);
      all += out[i] * out[i];
    }
    return std::sqrt(off / all);
  }
  double relative_state(const State& actual) const {
    double off = 0, all = 0;
    for (size_t i = 0; i < state.size(); ++i) {
      const double x = static_cast<double>(actual.delta_state(1)[i]);
      off += (x - state[i]) * (x - state[i]);
      all += state[i] * state[i];
    }
    return std::sqrt(off / all);
  }
};

/// The field case's limit for the chunked form in float.
constexpr double kChunkedLimit = 1e-4;

class DeltaVerb : public VerbTest {
 protected:
  Exact exact(const Sequence& s) const {
    return exact(s, [&](int64_t h) { return h % s.shape.key_heads; });
  }
  template <class KeyHead>
  Exact exact(const Sequence& s, KeyHead key_head) const {
    return Exact(s, *s.start(), works_in_double() ? 0x1p-52 : 0x1p-24, key_head);
  }
  /// Runs both forms and compares outputs and final states.
  void expect_right(const Sequence& s, const std::vector<int64_t>& pieces) {
    const Exact expected = exact(s);
    for (const DeltaForm form : {DeltaForm::token, DeltaForm::chunked}) {
      auto state = s.start();
      const Field out = s.run(op(), *state, form, pieces);
      ASSERT_TRUE(out.finite());
      SCOPED_TRACE(std::to_string(s.shape.key_heads) + "/" + std::to_string(s.shape.value_heads) + " heads of " +
                   std::to_string(s.shape.size) + ", " + std::to_string(s.n) + " rows in " +
                   std::to_string(pieces.size()) + (form == DeltaForm::token ? ", token" : ", chunked"));
      // The chunked form in float sums other terms; it has the limit of the field case. In double it has none of
      // these roundings, only the stores, which are fewer than those of the token form.
      if (form == DeltaForm::token || works_in_double()) {
        EXPECT_TRUE(expected.compare_out(out).within_bounds());
        EXPECT_TRUE(expected.compare_state(*state, s.shape.size).within_bounds());
      }
      EXPECT_LT(expected.relative_out(out), kChunkedLimit);
      EXPECT_LT(expected.relative_state(*state), kChunkedLimit);
    }
  }
};
KZ_FOR_EVERY_BACKEND(DeltaVerb);

std::vector<int64_t> pieces_of(int64_t n, int64_t length) {
  std::vector<int64_t> pieces;
  for (int64_t done = 0; done < n; done += length) pieces.push_back(std::min(length, n - done));
  return pieces;
}

// B159: 1, 3, 4, 63, 64, 65, 512, 4096 rows.
TEST_P(DeltaVerb, Lengths) {
  for (const int64_t n : {1, 2, 3, 4, 5, 17, 63, 64, 65, 128, 129, 512}) expect_right(Sequence({2, 2, 16}, n), {n});
}

TEST_P(DeltaVerb, LongSequences) {
  const Sequence s({1, 2, 16}, 4096);
  expect_right(s, {4096});
  expect_right(s, pieces_of(4096, 512));
}

TEST_P(DeltaVerb, Shapes) {
  for (const Shape& shape : {Shape{1, 1, 16}, {2, 4, 16}, {1, 3, 20}, {2, 6, 7}, {2, 4, 64}, {4, 8, 33}}) {
    expect_right(Sequence(shape, 70), {70});
  }
  expect_right(Sequence({1, 2, 128}, 67), {67});
}

TEST_P(DeltaVerb, EveryKindOfCut) {
  const Sequence s({2, 4, 16}, 200);
  for (const int64_t length : {1, 2, 3, 7, 63, 64, 65, 128}) expect_right(s, pieces_of(200, length));
  expect_right(s, {1, 64, 63, 65, 7});
}

TEST_P(DeltaVerb, AnyCuttingOfTheTokenFormGivesTheSameBits) {
  const Sequence s({2, 6, 32}, 150);
  auto state = s.start();
  const Field whole = s.run(op(), *state, DeltaForm::token, {150});
  for (const int64_t length : {1, 3, 7, 64, 65, 149}) {
    auto other = s.start();
    const Field out = s.run(op(), *other, DeltaForm::token, pieces_of(150, length));
    EXPECT_TRUE(out.same_rows(0, whole, 0, 150)) << "pieces of " << length;
    EXPECT_EQ(std::memcmp(state->delta_state(1), other->delta_state(1), static_cast<size_t>(s.state_floats()) * 4), 0);
  }
}

// Decays of e^-316 in one token have been seen: e^(+316) must never be formed, nor 0 * infinity.
TEST_P(DeltaVerb, ExtremeDecaysAndFullWriteStrength) {
  Sequence s({1, 2, 32}, 200);
  for (int64_t r = 0; r < s.n; ++r) {
    for (int64_t h = 0; h < 2; ++h) {
      s.g.at(h, r) = r % 5 == h ? -316.0f : r % 5 == 3 ? 0.0f : -1e-4f;
      s.beta.at(h, r) = 20.0f;  // sigmoid(20) = 1 - 2e-9
    }
  }
  expect_right(s, {200});
  for (int64_t r = 0; r < s.n; ++r) {  // every token forgets everything
    for (int64_t h = 0; h < 2; ++h) s.g.at(h, r) = -316.0f;
  }
  expect_right(s, {200});
  for (int64_t r = 0; r < s.n; ++r) {  // and nothing is ever forgotten
    for (int64_t h = 0; h < 2; ++h) s.g.at(h, r) = 0.0f;
  }
  expect_right(s, {200});
}

// 512 tokens of g = -316 sum to -161792: differences must keep what a small g adds.
TEST_P(DeltaVerb, SmallDecaysAfterALargeSum) {
  Sequence s({1, 1, 16}, 64);
  for (int64_t r = 0; r < s.n; ++r) s.g.at(0, r) = r < 32 ? -316.0f : -0.01f;
  expect_right(s, {64});
}

TEST_P(DeltaVerb, ZeroKeysAndQueriesStayFinite) {
  Sequence s({1, 1, 16}, 70);
  for (int64_t r = 0; r < s.n; r += 3) {
    for (int64_t i = 0; i < 16; ++i) s.q.at(i, r) = s.k.at(i, r) = 0.0f;
  }
  expect_right(s, {70});
}

// GGUF's tiled order: the key head of value head h is h mod nk. With nk == nv a mistake would stay invisible.
TEST_P(DeltaVerb, ConfusedKeyHeadsWouldFail) {
  const Sequence s({2, 6, 16}, 20);
  const Exact wrong = exact(s, [](int64_t h) { return h / 3; });
  const Exact right = exact(s);
  for (const DeltaForm form : {DeltaForm::token, DeltaForm::chunked}) {
    auto state = s.start();
    const Field out = s.run(op(), *state, form, {20});
    EXPECT_LT(right.relative_out(out), kChunkedLimit);
    EXPECT_GT(wrong.relative_out(out), 0.1);
    EXPECT_GT(wrong.relative_state(*state), 0.1);
    EXPECT_GT(wrong.compare_out(out).ratio(), 100.0);
  }
}

// The exact answer itself, by hand: S = 1, one token. q and k normalise to 1 (up to 1e-6), M = 0.5.
TEST_P(DeltaVerb, OneNumberByHand) {
  Sequence s({1, 1, 1}, 1);
  s.q.at(0, 0) = 1000.0f;
  s.k.at(0, 0) = -1000.0f;
  s.v.at(0, 0) = 4.0f;
  s.g.at(0, 0) = -std::log(2.0f);  // decay 1/2
  s.beta.at(0, 0) = 0.0f;          // strength 1/2
  for (const DeltaForm form : {DeltaForm::token, DeltaForm::chunked}) {
    auto state = s.start();
    state->delta_state(1)[0] = 0.5f;
    // M = 0.25; read M k = -0.25; delta = (4 + 0.25) / 2 = 2.125; M = 0.25 - 2.125 = -1.875; out = M q = -1.875.
    const Field out = s.run(op(), *state, form, {1});
    EXPECT_NEAR(out.at(0, 0), -1.875, 16 * 0x1p-24 * 4);
    EXPECT_NEAR(static_cast<double>(state->delta_state(1)[0]), -1.875, 16 * 0x1p-24 * 4);
  }
}

}  // namespace
}  // namespace kz::testing
