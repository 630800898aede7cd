// The causal convolution: kernel widths, padded kernels, history across spans shorter than it.
#include <algorithm>
#include <cmath>

#include "verbs.h"

namespace kz::testing {
namespace {

class Convolution : public VerbTest {};
KZ_FOR_EVERY_BACKEND(Convolution);

StateLayout layout_of(int64_t channels, int64_t n_taps) {  // the second layer is the one in use
  return {{}, {{1, 8, 24, 3}, {1, 8, channels, n_taps - 1}}};
}

/// Runs the rows of x in pieces of the given lengths.
Field run(Backend& op, State& state, const Field& x, const Field& taps, const std::vector<int64_t>& pieces) {
  Field out = x;
  int64_t done = 0;
  for (const int64_t piece : pieces) {
    Batch batch;
    batch.add(state, piece);
    op.causal_conv_silu(rows_of(out.tensor(), done, piece), taps.tensor(), 1, batch.rows());
    batch.commit();
    done += piece;
  }
  EXPECT_EQ(done, x.rows());
  EXPECT_TRUE(out.guards_intact());
  return out;
}

std::vector<int64_t> pieces_of(int64_t n, int64_t length) {
  std::vector<int64_t> pieces;
  for (int64_t done = 0; done < n; done += length) pieces.push_back(std::min(length, n - done));
  return pieces;
}

TEST_P(Convolution, EveryLengthKernelAndPad) {
  for (const int64_t channels : {1, 5, 16, 40, 100, 300}) {
    for (const auto& [n_taps, pad] : {std::pair<int64_t, int64_t>{4, 0}, {4, 3}, {2, 1}, {3, 0}}) {
      for (const int64_t n : {1, 2, 3, 4, 5, 17, 63, 64, 65, 512}) {
        if (n == 512 && channels > 40) continue;
        const Field x = Field(channels, n).fill(51), taps = Field(n_taps, channels, pad).fill(52);
        auto state = new_state(layout_of(channels, n_taps));
        const Field out = run(op(), *state, x, taps, {n});
        Worst worst;
        for (int64_t t = 0; t < n; ++t) {
          for (int64_t c = 0; c < channels; ++c) {
            double sum = 0, size = 0;
            for (int64_t m = 0; m < n_taps; ++m) {
              const int64_t from = t - (n_taps - 1) + m;  // before the sequence: zero
              if (from < 0) continue;
              sum += taps.at(m, c) * x.at(c, from);
              size += std::abs(taps.at(m, c) * x.at(c, from));
            }
            const double expected = sum * sigmoid(sum);
            // SiLU changes an error of its argument by at most a factor 1.1; its own error is that of a sigmoid.
            const double magnitude = 1.1 * size;
            worst.see(out.at(c, t), expected, tolerance(expected, static_cast<double>(n_taps) + 8, magnitude), t, c);
          }
        }
        EXPECT_TRUE(worst.within_bounds()) << channels << " channels, " << n_taps << " taps, " << n << " rows";
      }
    }
  }
}

TEST_P(Convolution, HistoryCrossesEveryKindOfCut) {
  constexpr int64_t kChannels = 40, kRows = 130;
  const Field x = Field(kChannels, kRows).fill(53), taps = Field(4, kChannels, 2).fill(54);
  auto state = new_state(layout_of(kChannels, 4));
  const Field whole = run(op(), *state, x, taps, {kRows});
  std::vector<std::vector<int64_t>> cuts = {{1, 129}, {2, 128}, {3, 127}, {1, 1, 1, 127}, {64, 2, 64}, {127, 1, 1, 1}};
  for (const int64_t length : {1, 2, 3, 4, 63, 64, 65}) cuts.push_back(pieces_of(kRows, length));
  for (const std::vector<int64_t>& pieces : cuts) {
    auto other = new_state(layout_of(kChannels, 4));
    const Field out = run(op(), *other, x, taps, pieces);
    EXPECT_TRUE(out.same_rows(0, whole, 0, kRows)) << pieces.size() << " pieces, first " << pieces.front();
    const float *a = state->conv_history(1), *b = other->conv_history(1);
    EXPECT_TRUE(std::equal(a, a + 3 * kChannels, b)) << "history after " << pieces.size() << " pieces";
  }
}

TEST_P(Convolution, TheStateKeepsTheLastInputsOldestFirst) {
  constexpr int64_t kChannels = 17;
  for (const int64_t n : {1, 2, 3, 9}) {
    const Field x = Field(kChannels, n).fill(55), taps = Field(4, kChannels).fill(56);
    auto state = new_state(layout_of(kChannels, 4));
    run(op(), *state, x, taps, {n});
    for (int64_t m = 0; m < 3; ++m) {
      for (int64_t c = 0; c < kChannels; ++c) {
        const int64_t from = n - 3 + m;
        const double expected = from < 0 ? 0.0 : x.at(c, from);
        EXPECT_EQ(static_cast<double>(state->conv_history(1)[m * kChannels + c]), expected)
            << n << " " << m << " " << c;
      }
    }
  }
}

}  // namespace
}  // namespace kz::testing
