// Several sequences in one batch, rollback and reuse: every sequence must come out as if it were alone and new.
#include <cmath>
#include <cstring>

#include "verbs.h"

namespace kz::testing {
namespace {

class Spans : public VerbTest {};
KZ_FOR_EVERY_BACKEND(Spans);

constexpr int64_t kHeads = 4, kKvHeads = 2, kDim = 32, kKeyHeads = 2, kValueHeads = 4, kSize = 16;
constexpr int64_t kChannels = (2 * kKeyHeads + kValueHeads) * kSize;

StateLayout layout() { return {{{kKvHeads, kDim, kDim}}, {{kValueHeads, kSize, kChannels, 3}}}; }

/// Inputs of one sequence for all verbs that need history, and what they gave.
struct Sequence {
  Field q, k, v, channels, g, beta, attention, delta;

  Sequence(uint32_t seed, int64_t n)
      : q(kHeads * kDim, n),
        k(kKvHeads * kDim, n),
        v(kKvHeads * kDim, n),
        channels(kChannels, n),
        g(kValueHeads, n),
        beta(kValueHeads, n),
        attention(kHeads * kDim, n),
        delta(kValueHeads * kSize, n) {
    q.fill(seed);
    k.fill(seed + 1);
    v.fill(seed + 2);
    channels.fill(seed + 3);
    beta.fill(seed + 4);
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t h = 0; h < kValueHeads; ++h) g.at(h, r) = -0.05f * static_cast<float>(h + r % 3);
    }
  }
  int64_t rows() const { return q.rows(); }
  void copy_rows(int64_t first, const Sequence& from, int64_t from_first, int64_t n) {
    for (Field Sequence::* field : {&Sequence::q, &Sequence::k, &Sequence::v, &Sequence::channels, &Sequence::g,
                                    &Sequence::beta, &Sequence::attention, &Sequence::delta}) {
      (this->*field).copy_rows(first, from.*field, from_first, n);
    }
  }
  bool same_results(int64_t first, const Sequence& other, int64_t other_first, int64_t n) const {
    return attention.same_rows(first, other.attention, other_first, n) &&
           delta.same_rows(first, other.delta, other_first, n);
  }
};

/// All history verbs over a batch whose rows are those of `s`.
void run(Backend& op, Sequence& s, const Batch& batch, DeltaForm form) {
  static const Field taps = Field(4, kChannels).fill(77);
  const Rows rows = batch.rows();
  op.append(s.k.heads(kKvHeads), s.v.heads(kKvHeads), 0, rows);
  op.attention(s.q.heads(kHeads), 0.2f, 0, rows, s.attention.heads(kHeads));
  op.causal_conv_silu(s.channels.tensor(), taps.tensor(), 0, rows);
  const Tensor c = s.channels.tensor();
  op.delta_rule(heads_view(c, 0, kSize, kKeyHeads, kSize), heads_view(c, kKeyHeads * kSize, kSize, kKeyHeads, kSize),
                heads_view(c, 2 * kKeyHeads * kSize, kSize, kValueHeads, kSize), s.g.tensor(), s.beta.tensor(),
                {kKeyHeads, kValueHeads, kSize, form}, 0, rows, s.delta.heads(kValueHeads));
  ASSERT_TRUE(s.attention.guards_intact() && s.delta.guards_intact() && s.channels.guards_intact());
}

/// The whole sequence alone, in one span of a new state.
Sequence alone(Backend& op, uint32_t seed, int64_t n, DeltaForm form) {
  Sequence s(seed, n);
  auto state = new_state(layout());
  Batch batch;
  batch.add(*state, n);
  run(op, s, batch, form);
  return s;
}

bool same_memory(const State& a, const State& b) {
  return std::memcmp(a.delta_state(0), b.delta_state(0), kValueHeads * kSize * kSize * 4) == 0 &&
         std::memcmp(a.conv_history(0), b.conv_history(0), 3 * kChannels * 4) == 0;
}

TEST_P(Spans, SeveralSpansInABatchAreThoseAlone) {
  for (const DeltaForm form : {DeltaForm::token, DeltaForm::chunked}) {
    const int64_t lengths[] = {1, 70, 2, 17};
    auto pool = std::make_shared<KvPool>(layout(), 8, DType::f32, DType::f32);
    std::vector<std::unique_ptr<State>> states;
    Batch batch;
    Sequence all(1, 90);
    int64_t row = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      states.push_back(std::make_unique<State>(layout(), pool, 512));
      batch.add(*states.back(), lengths[i]);
      all.copy_rows(row, Sequence(100 * (i + 1), lengths[i]), 0, lengths[i]);
      row += lengths[i];
    }
    ASSERT_EQ(row, all.rows());
    run(op(), all, batch, form);
    row = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      const Sequence expected = alone(op(), 100 * (i + 1), lengths[i], form);
      EXPECT_TRUE(all.same_results(row, expected, 0, lengths[i])) << "span " << i;
      row += lengths[i];
    }
  }
}

// Two sequences take turns in one pool, also in one batch, across block borders.
TEST_P(Spans, SequencesOfOnePoolNeverSeeEachOther) {
  constexpr int64_t kRows = 300;
  const Sequence first = alone(op(), 500, kRows, DeltaForm::token), second = alone(op(), 600, kRows, DeltaForm::token);
  auto pool = std::make_shared<KvPool>(layout(), 8, DType::f32, DType::f32);
  State a(layout(), pool, 512), b(layout(), pool, 512);
  const Sequence a_inputs(500, kRows), b_inputs(600, kRows);
  int64_t at_a = 0, at_b = 0;
  while (at_a < kRows || at_b < kRows) {
    const int64_t n_a = std::min<int64_t>(97, kRows - at_a), n_b = std::min<int64_t>(41, kRows - at_b);
    Sequence s(1, n_a + n_b);
    Batch batch;
    if (n_b > 0) batch.add(b, n_b);
    if (n_a > 0) batch.add(a, n_a);
    s.copy_rows(0, b_inputs, at_b, n_b);
    s.copy_rows(n_b, a_inputs, at_a, n_a);
    run(op(), s, batch, DeltaForm::token);
    batch.commit();
    EXPECT_TRUE(s.same_results(0, second, at_b, n_b)) << "second at " << at_b;
    EXPECT_TRUE(s.same_results(n_b, first, at_a, n_a)) << "first at " << at_a;
    at_a += n_a;
    at_b += n_b;
  }
}

TEST_P(Spans, AClearedStateIsANewOne) {
  const Sequence expected = alone(op(), 700, 80, DeltaForm::token);
  auto state = new_state(layout());
  for (int round = 0; round < 2; ++round) {
    Sequence noise(900, 400), s(700, 80);
    Batch before, batch;
    before.add(*state, 400);
    run(op(), noise, before, DeltaForm::token);
    if (round == 0) before.commit();  // in the second round it is abandoned
    state->clear();
    batch.add(*state, 80);
    run(op(), s, batch, DeltaForm::token);
    EXPECT_TRUE(s.same_results(0, expected, 0, 80)) << "round " << round;
    state->clear();
  }
}

TEST_P(Spans, ARolledBackSpanLeavesNoTrace) {
  for (const int64_t start : {0, 1, 2, 250}) {  // with 0 to 2 rows the history holds old zeros
    auto state = new_state(layout(), 512, DType::f32, State::Rollback::snapshot);
    auto straight = new_state(layout(), 512);
    for (State* each : {state.get(), straight.get()}) {
      if (start == 0) continue;
      Sequence s(800, start);
      Batch batch;
      batch.add(*each, start);
      run(op(), s, batch, DeltaForm::token);
      batch.commit();
    }
    Sequence rejected(900, 10);
    Batch drafted;
    drafted.add(*state, 10);
    run(op(), rejected, drafted, DeltaForm::token);
    state->commit(0);
    EXPECT_TRUE(same_memory(*state, *straight)) << "start " << start;

    Sequence next(1000, 20), expected(1000, 20);
    Batch batch, other;
    batch.add(*state, 20);
    other.add(*straight, 20);
    run(op(), next, batch, DeltaForm::token);
    run(op(), expected, other, DeltaForm::token);
    EXPECT_TRUE(next.same_results(0, expected, 0, 20)) << "start " << start;
    EXPECT_TRUE(same_memory(*state, *straight)) << "start " << start;
  }
}

// Every table promises the bits of the others (class f32).
TEST_P(Spans, EveryTableOfTheCpuHasTheSameBits) {
  if (GetParam() == "reference") return;
  auto scalar = open_backend("cpu-scalar", 1);
  scalar->reserve(limits());
  for (const DeltaForm form : {DeltaForm::token, DeltaForm::chunked}) {
    const Sequence a = alone(op(), 1100, 300, form), b = alone(*scalar, 1100, 300, form);
    EXPECT_TRUE(a.same_results(0, b, 0, 300));
  }
}

// The chain of verbs, not one alone: float against double.
TEST_P(Spans, TheCpuAgreesWithTheReference) {
  auto reference = make_reference_backend();
  reference->reserve(limits());
  for (const DeltaForm form : {DeltaForm::token, DeltaForm::chunked}) {
    const Sequence a = alone(op(), 1200, 300, form), b = alone(*reference, 1200, 300, form);
    double off = 0, all = 0;
    for (int64_t r = 0; r < 300; ++r) {
      for (int64_t c = 0; c < a.delta.cols(); ++c) {
        off += (a.delta.at(c, r) - b.delta.at(c, r)) * (a.delta.at(c, r) - b.delta.at(c, r));
        all += b.delta.at(c, r) * b.delta.at(c, r);
      }
    }
    EXPECT_LT(std::sqrt(off / all), 1e-4);
  }
}

}  // namespace
}  // namespace kz::testing
