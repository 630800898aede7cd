// Verbs that look at one row at a time: norms, gates, rotation, embedding, the head.
#include <cmath>
#include <complex>
#include <cstring>

#include "core/error.h"
#include "verbs.h"

namespace kz::testing {
namespace {

class RowVerbs : public VerbTest {};
KZ_FOR_EVERY_BACKEND(RowVerbs);

constexpr int64_t kWidths[] = {1, 3, 7, 15, 16, 17, 33, 64, 127, 576, 2560};
/// e^x within 2 units in the last place (4 roundings), and what surrounds it in a sigmoid or SiLU.
constexpr double kGateOperations = 8;

double root_mean_square(const Field& x, int64_t first, int64_t n, int64_t row, double eps) {
  double sum = 0;
  for (int64_t c = 0; c < n; ++c) sum += x.at(first + c, row) * x.at(first + c, row);
  return std::sqrt(sum / static_cast<double>(n) + eps);
}

TEST_P(RowVerbs, RmsNorm) {
  for (const int64_t d : kWidths) {
    for (int64_t rows = 1; rows <= 17; rows += 4) {
      const Field x = Field(d, rows).fill(1, 3.0f), w = Field(d, 1).fill(2, 0.5f, 1.0f);
      Field out(d, rows);
      op().rms_norm(x.tensor(), w.tensor(), 1e-6f, out.tensor());
      Worst worst;
      for (int64_t r = 0; r < rows; ++r) {
        const double rms = root_mean_square(x, 0, d, r, 1e-6f);
        for (int64_t c = 0; c < d; ++c) {
          const double expected = x.at(c, r) / rms * w.at(c, 0);
          worst.see(out.at(c, r), expected, tolerance(expected, static_cast<double>(d) + 8, std::abs(expected)), r, c);
        }
      }
      EXPECT_TRUE(worst.within_bounds()) << "d " << d << ", rows " << rows;
      EXPECT_TRUE(out.guards_intact());
      Field in_place = x;
      op().rms_norm(in_place.tensor(), w.tensor(), 1e-6f, in_place.tensor());
      EXPECT_TRUE(in_place.same_rows(0, out, 0, rows));
    }
  }
}

TEST_P(RowVerbs, RmsNormOfZerosIsZero) {
  Field x(64, 3);
  const Field w = Field(64, 1).fill(2);
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < 64; ++c) x.at(c, r) = 0.0f;
  }
  op().rms_norm(x.tensor(), w.tensor(), 1e-6f, x.tensor());
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < 64; ++c) EXPECT_EQ(std::as_const(x).at(c, r), 0.0);
  }
}

// Qwen3.5's gated attention: query and gate of a head lie side by side, so heads start 2 * D apart.
TEST_P(RowVerbs, RmsNormOfEveryOtherHeadLeavesTheGatesAlone) {
  constexpr int64_t kDim = 24, kHeads = 3, kRows = 5;
  const Field before = Field(2 * kDim * kHeads, kRows).fill(3), w = Field(kDim, 1).fill(4, 0.2f, 1.0f);
  Field x = before;
  const Tensor queries = heads_view(x.tensor(), 0, kDim, kHeads, 2 * kDim);
  op().rms_norm(queries, w.tensor(), 1e-6f, queries);
  Worst worst;
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t h = 0; h < kHeads; ++h) {
      const double rms = root_mean_square(before, 2 * kDim * h, kDim, r, 1e-6f);
      for (int64_t c = 0; c < kDim; ++c) {
        const int64_t query = 2 * kDim * h + c, gate = query + kDim;
        const double expected = before.at(query, r) / rms * w.at(c, 0);
        worst.see(std::as_const(x).at(query, r), expected, tolerance(expected, kDim + 8, std::abs(expected)), r, query);
        EXPECT_EQ(std::as_const(x).at(gate, r), before.at(gate, r));
      }
    }
  }
  EXPECT_TRUE(worst.within_bounds());
  EXPECT_TRUE(x.guards_intact());
}

TEST_P(RowVerbs, SigmoidGateOfHeadsSideBySide) {
  constexpr int64_t kDim = 20, kHeads = 3;
  for (int64_t rows = 1; rows <= 17; ++rows) {
    const Field gates = Field(2 * kDim * kHeads, rows).fill(5, 30.0f), before = Field(kDim * kHeads, rows).fill(6);
    Field x = before;
    op().sigmoid_gate(x.heads(kHeads), heads_view(gates.tensor(), kDim, kDim, kHeads, 2 * kDim));
    Worst worst;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < kDim * kHeads; ++c) {
        const double expected = before.at(c, r) * sigmoid(gates.at(c / kDim * 2 * kDim + kDim + c % kDim, r));
        worst.see(std::as_const(x).at(c, r), expected, tolerance(expected, kGateOperations, std::abs(expected)), r, c);
      }
    }
    EXPECT_TRUE(worst.within_bounds()) << rows << " rows";
    EXPECT_TRUE(x.guards_intact());
  }
}

TEST_P(RowVerbs, NormSiluGate) {
  for (const int64_t size : {16, 20, 128}) {
    for (int64_t rows = 1; rows <= 17; rows += 2) {
      constexpr int64_t kHeads = 3;
      const Field before = Field(size * kHeads, rows).fill(7, 0.1f), z = Field(size * kHeads, rows).fill(8, 4.0f);
      const Field w = Field(size, 1).fill(9, 0.3f, 1.0f);
      Field x = before;
      op().norm_silu_gate(x.heads(kHeads), w.tensor(), 1e-6f, z.heads(kHeads));
      Worst worst;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < size * kHeads; ++c) {
          const double rms = root_mean_square(before, c / size * size, size, r, 1e-6f);
          const double expected = before.at(c, r) / rms * w.at(c % size, 0) * z.at(c, r) * sigmoid(z.at(c, r));
          worst.see(std::as_const(x).at(c, r), expected,
                    tolerance(expected, static_cast<double>(size) + 8 + kGateOperations, std::abs(expected)), r, c);
        }
      }
      EXPECT_TRUE(worst.within_bounds()) << "S " << size << ", rows " << rows;
      EXPECT_TRUE(x.guards_intact());
    }
  }
}

TEST_P(RowVerbs, Swiglu) {
  for (const int64_t d : kWidths) {
    for (const int64_t rows : {1, 2, 17}) {
      Field gate = Field(d, rows).fill(10, 20.0f);
      const Field up = Field(d, rows).fill(11);
      gate.at(0, 0) = -200.0f;  // e^200 is beyond float: the product must go to zero, not to NaN
      Field out(d, rows);
      op().swiglu(gate.tensor(), up.tensor(), out.tensor());
      Worst worst;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < d; ++c) {
          const double g = std::as_const(gate).at(c, r), expected = g * sigmoid(g) * up.at(c, r);
          worst.see(out.at(c, r), expected, tolerance(expected, kGateOperations, std::abs(expected)), r, c);
        }
      }
      EXPECT_TRUE(worst.within_bounds()) << "d " << d << ", rows " << rows;
      EXPECT_TRUE(out.guards_intact());
      op().swiglu(gate.tensor(), up.tensor(), gate.tensor());
      EXPECT_TRUE(gate.same_rows(0, out, 0, rows));
    }
  }
}

TEST_P(RowVerbs, Add) {
  for (const int64_t d : kWidths) {
    for (int64_t rows = 1; rows <= 17; ++rows) {
      const Field before = Field(d, rows).fill(12), y = Field(d, rows).fill(13, 1e-3f);
      Field x = before;
      op().add(x.tensor(), y.tensor());
      int64_t wrong = 0;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < d; ++c) {
          wrong += std::as_const(x).at(c, r) !=
                   static_cast<double>(static_cast<float>(before.at(c, r)) + static_cast<float>(y.at(c, r)));
        }
      }
      EXPECT_EQ(wrong, 0);
      EXPECT_TRUE(x.guards_intact());
    }
  }
}

TEST_P(RowVerbs, Decay) {
  for (const int64_t heads : {1, 3, 16, 33}) {
    for (int64_t rows = 1; rows <= 17; rows += 4) {
      Field x = Field(heads, rows).fill(14, 8.0f);
      x.at(0, 0) = 300.0f;  // softplus(x) = x here
      if (rows > 1) x.at(heads - 1, 1) = -60.0f;
      const Field before = x, dt = Field(heads, 1).fill(15);
      Field a = Field(heads, 1).fill(16);
      for (int64_t h = 0; h < heads; ++h) a.at(h, 0) = -std::exp(a.at(h, 0));
      op().decay(x.tensor(), dt.tensor(), a.tensor());
      Worst worst;
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t h = 0; h < heads; ++h) {
          const double t = before.at(h, r) + dt.at(h, 0);
          const double softplus = std::max(t, 0.0) + std::log1p(std::exp(-std::abs(t)));
          const double expected = std::as_const(a).at(h, 0) * softplus;
          // log(1 + e^t) in float turns an error of t into the same error of the result, relative to max(1, |t|).
          const double magnitude = std::abs(std::as_const(a).at(h, 0)) * (softplus + std::abs(t) * sigmoid(t));
          worst.see(std::as_const(x).at(h, r), expected, tolerance(expected, kGateOperations, magnitude), r, h);
          EXPECT_LE(std::as_const(x).at(h, r), 0.0);
        }
      }
      EXPECT_TRUE(worst.within_bounds()) << heads << " heads, " << rows << " rows";
      EXPECT_TRUE(x.guards_intact());
    }
  }
}

RopeTable rope_table(int64_t n_rot, double base, bool adjacent, double magnitude = 1.0) {
  RopeTable rope;
  rope.adjacent = adjacent;
  rope.magnitude = magnitude;
  for (int64_t i = 0; i < n_rot / 2; ++i) {
    rope.frequency.push_back(std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(n_rot)));
  }
  return rope;
}

TEST_P(RowVerbs, RopeTurnsPairsAndLeavesTheRestAlone) {
  const StateLayout layout{{{1, 32, 32}}, {}};
  for (const bool adjacent : {false, true}) {
    for (const auto& [dim, n_rot] : {std::pair<int64_t, int64_t>{64, 64}, {256, 64}, {24, 10}}) {
      for (const int64_t rows : {1, 5, 17}) {
        constexpr int64_t kHeads = 3, kStart = 3000;
        const double magnitude = adjacent ? 1.0 : 1.1386;
        const RopeTable rope = rope_table(n_rot, 1e6, adjacent, magnitude);
        auto state = new_state(layout);
        state->begin(kStart);
        state->commit(kStart);
        auto fresh = new_state(layout);
        Batch batch;
        batch.add(*state, rows).add(*fresh, 2);
        Field angles(n_rot, batch.size());
        op().rope_angles(rope, batch.rows(), angles.tensor());
        const Field before = Field(dim * kHeads, batch.size()).fill(20);
        Field x = before;
        op().rope(x.heads(kHeads), rope, angles.tensor());
        Worst worst;
        for (int64_t r = 0; r < batch.size(); ++r) {
          const int64_t position = r < rows ? kStart + r : r - rows;
          for (int64_t c = 0; c < dim * kHeads; ++c) {
            const int64_t head = c / dim, i = c % dim;
            if (i >= n_rot) {
              EXPECT_EQ(std::as_const(x).at(c, r), before.at(c, r));
              continue;
            }
            const int64_t pair = adjacent ? i / 2 : i % (n_rot / 2);
            const int64_t first = head * dim + (adjacent ? 2 * pair : pair);
            const int64_t second = adjacent ? first + 1 : first + n_rot / 2;
            const std::complex<double> value(before.at(first, r), before.at(second, r));
            const double theta = static_cast<double>(position) * rope.frequency[static_cast<size_t>(pair)];
            const std::complex<double> turned = value * std::polar(magnitude, theta);
            const double expected = c == first ? turned.real() : turned.imag();
            // The stored angles are floats: one rounding each, for every backend.
            const double bound =
                tolerance(expected, 4, magnitude * std::abs(value)) + 0x1p-23 * magnitude * std::abs(value);
            worst.see(std::as_const(x).at(c, r), expected, bound, r, c);
          }
        }
        EXPECT_TRUE(worst.within_bounds()) << "adjacent " << adjacent << ", D " << dim << ", n_rot " << n_rot;
        EXPECT_TRUE(x.guards_intact());
        EXPECT_TRUE(angles.guards_intact());
      }
    }
  }
}

TEST_P(RowVerbs, RopeAnglesAreRoundedOnceAtFarPositions) {
  const StateLayout layout{{}, {{1, 8, 24, 3}}};
  constexpr int64_t kStart = 262'000;
  auto state = new_state(layout, 300'000);
  state->begin(kStart);
  state->commit(kStart);
  const RopeTable rope = rope_table(64, 1e7, false);
  Batch batch;
  batch.add(*state, 9);
  Field angles(64, 9);
  op().rope_angles(rope, batch.rows(), angles.tensor());
  Worst worst;
  for (int64_t r = 0; r < 9; ++r) {
    for (int64_t i = 0; i < 32; ++i) {
      const double theta = static_cast<double>(kStart + r) * rope.frequency[static_cast<size_t>(i)];
      const double bound = 0x1p-24 + theta * 0x1p-52;
      worst.see(std::as_const(angles).at(i, r), std::cos(theta), bound, r, i);
      worst.see(std::as_const(angles).at(32 + i, r), std::sin(theta), bound, r, 32 + i);
    }
  }
  EXPECT_TRUE(worst.within_bounds());
}

TEST_P(RowVerbs, EmbedCopiesTheRowsOfTheTokens) {
  const Field table = Field(48, 7, 0).fill(30);
  const Weight weight = op().import_weight({"token_embd.weight", table.tensor()});
  for (int64_t rows = 1; rows <= 17; ++rows) {
    std::vector<int32_t> tokens;
    for (int64_t r = 0; r < rows; ++r) tokens.push_back(static_cast<int32_t>((5 * r + 6) % 7));
    const Batch batch = Batch::of(tokens);
    Field out(48, rows);
    op().embed(weight, batch.rows(), out.tensor());
    for (int64_t r = 0; r < rows; ++r) EXPECT_TRUE(out.same_rows(r, table, tokens[static_cast<size_t>(r)], 1)) << r;
    EXPECT_TRUE(out.guards_intact());
  }
}

TEST_P(RowVerbs, FinishNormsAndMultipliesTheWantedRowsOnly) {
  constexpr int64_t kDim = 96, kVocabulary = 37, kRows = 6;
  const Field x = Field(kDim, kRows).fill(31, 2.0f), norm = Field(kDim, 1).fill(32, 0.2f, 1.0f);
  const Field head = Field(kDim, kVocabulary, 0).fill(33, 0.3f);
  const Weight weight = op().import_weight({"output.weight", head.tensor()});
  for (const std::vector<int32_t>& wanted : std::vector<std::vector<int32_t>>{{}, {5}, {0, 2, 5}, {0, 1, 2, 3, 4, 5}}) {
    const auto n = static_cast<int64_t>(wanted.size());
    Batch batch = Batch::of(std::vector<int32_t>(kRows, 0));
    batch.logits(wanted);
    Field normed(kDim, std::max<int64_t>(n, 1)), logits(kVocabulary, std::max<int64_t>(n, 1));
    op().finish(x.tensor(), norm.tensor(), 1e-5f, weight, batch.rows(), normed.tensor(), logits.tensor());
    Worst worst_norm, worst;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = wanted[static_cast<size_t>(i)];
      const double rms = root_mean_square(x, 0, kDim, row, 1e-5f);
      for (int64_t c = 0; c < kDim; ++c) {
        const double expected = x.at(c, row) / rms * norm.at(c, 0);
        worst_norm.see(std::as_const(normed).at(c, i), expected, tolerance(expected, kDim + 8, std::abs(expected)), i,
                       c);
      }
      for (int64_t v = 0; v < kVocabulary; ++v) {
        double expected = 0, magnitude = 0;
        for (int64_t c = 0; c < kDim; ++c) {
          expected += std::as_const(normed).at(c, i) * head.at(c, v);
          magnitude += std::abs(std::as_const(normed).at(c, i) * head.at(c, v));
        }
        worst.see(std::as_const(logits).at(v, i), expected, tolerance(expected, kDim, magnitude), i, v);
      }
    }
    if (n > 0) {
      EXPECT_TRUE(worst_norm.within_bounds());
      EXPECT_TRUE(worst.within_bounds());
    }
    EXPECT_TRUE(logits.guards_intact());
    EXPECT_TRUE(normed.guards_intact());
  }
}

TEST_P(RowVerbs, UsesAreCountedPerVerb) {
  Field x = Field(8, 2).fill(1);
  const Field y = Field(8, 2).fill(2);
  op().add(x.tensor(), y.tensor());
  op().add(x.tensor(), y.tensor());
  op().swiglu(x.tensor(), y.tensor(), x.tensor());
  int64_t adds = 0, swiglus = 0, others = 0;
  for (const KernelUse& use : op().kernel_uses()) {
    (use.verb == "add" ? adds : use.verb == "swiglu" ? swiglus : others) += use.calls;
    EXPECT_NE(use.kernel, "");
    EXPECT_NE(use.device, "");
  }
  EXPECT_EQ(adds, 2);
  EXPECT_EQ(swiglus, 1);
  EXPECT_EQ(others, 0);
}

TEST_P(RowVerbs, ImportRefusesATypeThatIsNotAWeight) {
  const std::vector<float> bytes(64);
  WeightSource source{"blk.3.ffn_up.weight", matrix_f32(const_cast<float*>(bytes.data()), 32, 2)};
  EXPECT_TRUE(op().supports(DType::f32));
  EXPECT_EQ(op().import_weight(source).data, source.tensor.data);  // used in place
  EXPECT_FALSE(op().supports(DType::i32));
  source.tensor.dtype = DType::i32;
  try {
    op().import_weight(source);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("blk.3.ffn_up.weight"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("I32"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace kz::testing
