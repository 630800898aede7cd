// Model files that are written differently and mean the same, and one that must not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "core/half.h"
#include "model/testing.h"
#include "oracle.h"

namespace kz::testing {
namespace {

using gguf::ValueType;

std::vector<float> run_all(gguf::File file, const Oracle& oracle, Device device = Device::cpu) {
  return Runner(std::move(file), make_backend(device)).run(oracle.tokens, 64);
}

bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::string block_name(int64_t layer, const char* name) { return fmt::format("blk.{}.{}", layer, name); }

/// A model and the same one written in another way.
struct Pair {
  explicit Pair(const std::string& name) : oracle(load_oracle(name)), plain(oracle.path()), odd(oracle.path()) {}
  double difference() const { return relative_error(run_all(odd.open(), oracle), run_all(plain.open(), oracle)); }
  bool equal() const { return same_bytes(run_all(odd.open(), oracle), run_all(plain.open(), oracle)); }

  Oracle oracle;
  EditableModel plain;
  EditableModel odd;
};

/// Values that no rounding hides: v[i] between -scale and scale.
std::vector<float> pattern(int64_t n, float scale) {
  std::vector<float> values(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    values[static_cast<size_t>(i)] = scale * std::sin(static_cast<float>(i) * 1.7f + 0.3f);
  return values;
}

/// Puts q, k and v of a layer into one tensor: matrices, and biases where there are some.
void fuse_qkv(EditableModel& model, int64_t layer) {
  for (const char* kind : {"weight", "bias"}) {
    const std::string v_name = block_name(layer, "attn_v.") + kind;
    const auto exists = [&](const EditableModel::Part& part) { return part.name == v_name; };
    if (std::none_of(model.tensors().begin(), model.tensors().end(), exists)) continue;
    EditableModel::Part fused{block_name(layer, "attn_qkv.") + kind, model.tensor(v_name).dtype, {}, {}};
    for (const char* which : {"attn_q.", "attn_k.", "attn_v."}) {
      const EditableModel::Part& part = model.tensor(block_name(layer, which) + kind);
      if (fused.ne.empty()) {
        fused.ne = part.ne;
      } else {
        fused.ne.back() += part.ne.back();
      }
      fused.bytes.insert(fused.bytes.end(), part.bytes.begin(), part.bytes.end());
    }
    for (const char* which : {"attn_q.", "attn_k.", "attn_v."}) model.drop(block_name(layer, which) + kind);
    model.add(std::move(fused));
  }
}

TEST(OddModels, FusedQkvEqualsSplit) {
  Pair llama("llama");
  for (int64_t layer = 0; layer < 3; ++layer) fuse_qkv(llama.odd, layer);
  EXPECT_TRUE(llama.equal());
  Pair qwen2("qwen2");  // with biases
  fuse_qkv(qwen2.odd, 0);
  fuse_qkv(qwen2.odd, 1);
  EXPECT_TRUE(qwen2.equal());
}

TEST(OddModels, ValueBiasIsAnOutputBias) {
  // Attention weights sum to 1, so a bias of the values passes through and W_o turns it into an output bias.
  Pair pair("llama");
  const std::vector<float> bias = pattern(64, 0.5f);  // 2 KV heads of 32
  const std::vector<float> out = pair.plain.floats("blk.1.attn_output.weight");
  std::vector<float> out_bias(128);
  for (size_t row = 0; row < 128; ++row) {
    double sum = 0;
    for (size_t h = 0; h < 4; ++h) {
      for (size_t i = 0; i < 32; ++i) {
        sum += static_cast<double>(out[row * 128 + h * 32 + i]) * static_cast<double>(bias[(h / 2) * 32 + i]);
      }
    }
    out_bias[row] = static_cast<float>(sum);
  }
  const std::vector<float> without = run_all(pair.plain.open(), pair.oracle);
  pair.odd.set("blk.1.attn_v.bias", {64}, bias);
  pair.plain.set("blk.1.attn_output.bias", {128}, out_bias);
  EXPECT_LT(pair.difference(), 2e-5);
  EXPECT_GT(relative_error(run_all(pair.odd.open(), pair.oracle), without), 1e-2);
}

TEST(OddModels, FeedForwardBiases) {
  // 32 more units whose gate and up are constants add a constant: the same as a bias of ffn_down.
  Pair pair("llama");
  constexpr int64_t kF = 352;
  const std::vector<float> down_bias = pattern(128, 0.3f);
  const auto grown = [&](const char* name) {
    std::vector<float> values = pair.plain.floats(block_name(2, name));
    values.resize(128 * (kF + 32));
    return values;
  };
  pair.odd.set("blk.2.ffn_gate.weight", {128, kF + 32}, grown("ffn_gate.weight"));
  pair.odd.set("blk.2.ffn_up.weight", {128, kF + 32}, grown("ffn_up.weight"));
  const std::vector<float> down = pair.plain.floats("blk.2.ffn_down.weight");
  std::vector<float> wide_down(128 * (kF + 32));
  for (size_t row = 0; row < 128; ++row) {
    std::copy_n(down.begin() + static_cast<long>(row * kF), kF, wide_down.begin() + static_cast<long>(row * (kF + 32)));
    wide_down[row * (kF + 32) + kF + 5] = down_bias[row];
  }
  pair.odd.set("blk.2.ffn_down.weight", {kF + 32, 128}, wide_down);
  std::vector<float> gate_bias(kF + 32), up_bias(kF + 32);
  gate_bias[kF + 5] = 2.0f;
  up_bias[kF + 5] = static_cast<float>((1 + std::exp(-2.0)) / 2.0);  // 1 / SiLU(2)
  pair.odd.set("blk.2.ffn_gate.bias", {kF + 32}, gate_bias);
  pair.odd.set("blk.2.ffn_up.bias", {kF + 32}, up_bias);
  const int64_t lengths[] = {kF, kF, kF + 32};  // layers may differ
  pair.odd.keys().add_integers("llama.feed_forward_length", ValueType::i32, lengths);
  const std::vector<float> without = run_all(pair.plain.open(), pair.oracle);
  pair.plain.set("blk.2.ffn_down.bias", {128}, down_bias);
  EXPECT_LT(pair.difference(), 2e-5);
  EXPECT_GT(relative_error(run_all(pair.odd.open(), pair.oracle), without), 1e-2);
}

TEST(OddModels, ValuesMayBeWiderThanKeys) {
  Pair pair("llama");
  constexpr size_t kD = 32, kWide = 64, kEmbd = 128;
  pair.odd.keys().add_integer("llama.attention.value_length", ValueType::u32, kWide);
  for (int64_t layer = 0; layer < 3; ++layer) {
    const std::vector<float> v = pair.plain.floats(block_name(layer, "attn_v.weight"));
    const std::vector<float> out = pair.plain.floats(block_name(layer, "attn_output.weight"));
    std::vector<float> wide_v(kEmbd * 2 * kWide), wide_out(4 * kWide * kEmbd);
    for (size_t r = 0; r < 2 * kD; ++r) {
      std::copy_n(&v[r * kEmbd], kEmbd, &wide_v[(r / kD * kWide + r % kD) * kEmbd]);
    }
    for (size_t r = 0; r < kEmbd; ++r) {
      for (size_t h = 0; h < 4; ++h) std::copy_n(&out[(r * 4 + h) * kD], kD, &wide_out[(r * 4 + h) * kWide]);
    }
    pair.odd.set(block_name(layer, "attn_v.weight"), {kEmbd, 2 * kWide}, wide_v);
    pair.odd.set(block_name(layer, "attn_output.weight"), {4 * kWide, kEmbd}, wide_out);
  }
  EXPECT_LT(pair.difference(), 2e-6);
}

TEST(OddModels, UntiedHeadWithTheSameNumbers) {
  for (const char* name : {"llama", "qwen2", "qwen3", "qwen35-4b-like"}) {
    Pair pair(name);
    EditableModel::Part head = pair.odd.tensor("token_embd.weight");
    head.name = "output.weight";
    pair.odd.add(std::move(head));
    EXPECT_TRUE(pair.equal()) << name;
  }
}

TEST(OddModels, RopeDivisorsOfTwoAreLinearScalingByTwo) {
  Pair pair("llama");
  pair.odd.set("rope_freqs.weight", {16}, std::vector<float>(16, 2.0f));
  pair.plain.keys().add_f32("llama.rope.scaling.factor", 2.0f);
  EXPECT_TRUE(pair.equal());
}

TEST(OddModels, NormsMayBeHalfPrecision) {
  Pair pair("qwen3");
  for (const auto& [name, dtype] :
       {std::pair{"blk.0.attn_norm.weight", DType::f16}, std::pair{"blk.1.attn_q_norm.weight", DType::bf16}}) {
    std::vector<float> values = pair.plain.floats(name);
    std::vector<uint16_t> halves;
    for (float& value : values) {
      halves.push_back(dtype == DType::f16 ? f32_to_f16(value) : f32_to_bf16(value));
      value = dtype == DType::f16 ? f16_to_f32(halves.back()) : bf16_to_f32(halves.back());
    }
    const auto n = static_cast<int64_t>(values.size());
    pair.plain.set(name, {n}, values);
    pair.odd.drop(name);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(halves));
    pair.odd.add({name, dtype, {n}, {bytes.begin(), bytes.end()}});
  }
  EXPECT_TRUE(pair.equal());
}

TEST(OddModels, AlphaAndBetaOfAnyTypeComputeInFloat) {
  Pair pair("qwen35-4b-like");
  for (const char* name : {"blk.0.ssm_alpha.weight", "blk.0.ssm_beta.weight", "blk.2.ssm_alpha.weight"}) {
    const std::vector<float> values = pair.plain.floats(name);
    std::vector<std::byte> blocks(static_cast<size_t>(row_bytes(DType::q8_0, 160) * 4));
    for (int64_t r = 0; r < 4; ++r) {
      quantise_row(DType::q8_0, &values[static_cast<size_t>(r * 160)],
                   &blocks[static_cast<size_t>(r * row_bytes(DType::q8_0, 160))], 160);
    }
    pair.odd.drop(name);
    pair.odd.add({name, DType::q8_0, {160, 4}, blocks});
    pair.plain.set(name, {160, 4}, pair.odd.floats(name));
  }
  EXPECT_LT(pair.difference(), 2e-5);
}

// --- qwen35 as other writers spell it ----------------------------------------------------------------------------

TEST(OddModels, B025SectionsMayHaveThreeEntries) {
  Pair pair("qwen35-4b-like");
  const int64_t sections[] = {11, 11, 10};
  pair.odd.keys().add_integers("qwen35.rope.dimension_sections", ValueType::i32, sections);
  EXPECT_TRUE(pair.equal());
  pair.odd.drop_key("qwen35.rope.dimension_sections");
  EXPECT_TRUE(pair.equal());
}

TEST(OddModels, OllamaSpelling) {
  Pair pair("qwen35-08b-like");
  const int64_t kv_heads[] = {0, 0, 0, 2, 0, 0, 0, 2};
  const int64_t sections[] = {3, 3, 2};
  pair.odd.keys().add_integers("qwen35.attention.head_count_kv", ValueType::i32, kv_heads);
  pair.odd.keys().add_integers("qwen35.rope.dimension_sections", ValueType::i32, sections);
  for (int64_t layer = 0; layer < 8; ++layer) {
    if (layer % 4 != 3) pair.odd.rename(block_name(layer, "ssm_dt.bias"), block_name(layer, "ssm_dt"));
  }
  for (const char* name : {"v.blk.0.attn_q.weight", "v.patch_embd.weight", "mtp.fc.weight", "mtp.norm.weight"}) {
    pair.odd.set(name, {32, 2}, pattern(64, 1.0f));
  }
  EXPECT_TRUE(pair.equal());
  const Runner runner(pair.odd.open(), make_backend(Device::cpu));
  ASSERT_EQ(runner.model().notes().size(), 1u);
  EXPECT_EQ(runner.model().notes()[0],
            "4 tensors that qwen35 does not use are ignored: v.blk.0.attn_q.weight, "
            "v.patch_embd.weight, mtp.fc.weight, ...");
}

TEST(OddModels, ListOfRecurrentLayersOverridesTheInterval) {
  Pair pair("qwen35-08b-like");
  pair.odd.keys().add_integer("qwen35.full_attention_interval", ValueType::u32, 2);
  const int64_t recurrent[] = {1, 1, 1, 0, 1, 2, 255, 0};  // stored flags are true unless zero
  pair.odd.keys().add_integers("qwen35.attention.recurrent_layers", ValueType::boolean, recurrent);
  EXPECT_TRUE(pair.equal());
  pair.odd.keys().add_integers("qwen35.attention.recurrent_layers", ValueType::i32, recurrent);
  EXPECT_TRUE(pair.equal());
}

TEST(OddModels, B023MtpDeclaredButAbsent) {
  Pair pair("qwen35-4b-like");
  pair.odd.keys().add_integer("qwen35.block_count", ValueType::u32, 5);
  pair.odd.keys().add_integer("qwen35.nextn_predict_layers", ValueType::u32, 1);
  EXPECT_TRUE(pair.equal());
  const Runner runner(pair.odd.open(), make_backend(Device::cpu));
  EXPECT_EQ(runner.model().config().n_layers, 4);
  ASSERT_EQ(runner.model().notes().size(), 1u);
  EXPECT_EQ(runner.model().notes()[0], "MTP head declared but absent: speculative head off");
}

TEST(OddModels, MtpTensorsAreNamedAndLeftAlone) {
  const gguf::File file = gguf::File::open(std::string(KZ_TEST_DATA) + "/tiny/kazeia-tiny-f16.gguf");
  const std::unique_ptr<Model> model = read_model(file);
  bind_model(*model, file, nullptr);
  EXPECT_EQ(model->config().n_layers, 8);
  ASSERT_EQ(model->notes().size(), 1u);
  EXPECT_EQ(model->notes()[0], "MTP head present (15 tensors in blk.8): not used yet");
}

TEST(OddModels, ConvolutionKernelOfOtherLengths) {
  Pair five("qwen35-4b-like");  // a leading tap of zero changes nothing
  Pair three("qwen35-4b-like");
  five.odd.keys().add_integer("qwen35.ssm.conv_kernel", ValueType::u32, 5);
  three.odd.keys().add_integer("qwen35.ssm.conv_kernel", ValueType::u32, 3);
  for (int64_t layer = 0; layer < 3; ++layer) {
    const std::string name = block_name(layer, "ssm_conv1d.weight");
    std::vector<float> taps = five.plain.floats(name);
    std::vector<float> longer, shorter;
    for (size_t i = 0; i < taps.size(); i += 4) {
      longer.push_back(0.0f);
      longer.insert(longer.end(), &taps[i], &taps[i] + 4);
      taps[i] = 0.0f;
      shorter.insert(shorter.end(), &taps[i] + 1, &taps[i] + 4);
    }
    five.odd.set(name, {5, 1024}, longer);
    three.odd.set(name, {3, 1024}, shorter);
    three.plain.set(name, {4, 1024}, taps);
  }
  EXPECT_LT(five.difference(), 1e-6);
  EXPECT_LT(three.difference(), 1e-6);
}

// --- B029: which key head a value head belongs to ----------------------------------------------------------------

/// Moves units of `unit` consecutive values: new unit h is old unit from[h], in every row of `row` values from
/// `first` on.
std::vector<float> move_units(const std::vector<float>& values, size_t row, size_t first, size_t unit,
                              const std::vector<size_t>& from) {
  std::vector<float> moved = values;
  for (size_t r = 0; r < values.size(); r += row) {
    for (size_t h = 0; h < from.size(); ++h) {
      std::copy_n(values.begin() + static_cast<long>(r + first + from[h] * unit), unit,
                  moved.begin() + static_cast<long>(r + first + h * unit));
    }
  }
  return moved;
}

/// Reorders the value heads of every delta layer, in all eight tensors that know about them.
void move_value_heads(EditableModel& model, const std::vector<size_t>& from, size_t nk, size_t S, size_t d) {
  const size_t nv = from.size();
  const size_t channels = (2 * nk + nv) * S;
  for (int64_t layer = 0; layer < 3; ++layer) {
    const auto move = [&](const char* name, size_t row, size_t first, size_t unit) {
      const std::string full = block_name(layer, name);
      const std::vector<int64_t> ne = model.tensor(full).ne;
      model.set(full, ne, move_units(model.floats(full), row, first, unit, from));
    };
    move("attn_qkv.weight", channels * d, 2 * nk * S * d, S * d);
    move("attn_gate.weight", nv * S * d, 0, S * d);
    move("ssm_beta.weight", nv * d, 0, d);
    move("ssm_alpha.weight", nv * d, 0, d);
    move("ssm_conv1d.weight", channels * 4, 2 * nk * S * 4, S * 4);
    move("ssm_dt.bias", nv, 0, 1);
    move("ssm_a", nv, 0, 1);
    move("ssm_out.weight", nv * S, 0, S);
  }
}

TEST(OddModels, B029ValueHeadsAreTiled) {
  const Oracle oracle = load_oracle("qwen35-4b-like");
  for (const Device device : {Device::reference, Device::cpu}) {
    // h' = j * nk + k belongs to key head k: exchanging j = 0 and j = 1 keeps every head with its key ...
    EditableModel same(oracle.path());
    move_value_heads(same, {2, 3, 0, 1}, 2, 128, 160);
    EXPECT_LT(worst_row_error(oracle, run_all(same.open(), oracle, device)), 2e-4);
    // ... and the order of the original checkpoints, k * r + j, does not.
    EditableModel grouped(oracle.path());
    move_value_heads(grouped, {0, 2, 1, 3}, 2, 128, 160);
    EXPECT_GT(worst_row_error(oracle, run_all(grouped.open(), oracle, device)), 0.1);
  }
}

}  // namespace
}  // namespace kz::testing
