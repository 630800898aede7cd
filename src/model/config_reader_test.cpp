// Configurations that are wrong: each is refused with one line that names the key, and all at once.
#include "model/config_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/testing.h"

namespace kz {
namespace {

using gguf::ValueType;
using testing::EditableModel;
using testing::says;

std::string oracle_path(const std::string& name) { return std::string(KZ_TEST_DATA) + "/oracle/" + name + ".f16.gguf"; }

/// The message of the error that reading the configuration gives, after "CODE: ".
std::string refusal(const EditableModel& model) {
  try {
    const gguf::File file = model.open();
    read_model(file);
  } catch (const Error& error) {
    const bool unsupported = error.code() == ErrorCode::unsupported;
    EXPECT_TRUE(unsupported || error.code() == ErrorCode::bad_file);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return std::string(unsupported ? "unsupported: " : "bad_file: ") + error.what();
  }
  return "accepted";
}

/// Changes one integer key of a model.
std::string refusal_with(const std::string& model, const std::string& key, int64_t value) {
  EditableModel edited(oracle_path(model));
  edited.keys().add_integer(key, ValueType::i64, value);
  return refusal(edited);
}

std::string refusal_with(const std::string& model, const std::string& key, float value) {
  EditableModel edited(oracle_path(model));
  edited.keys().add_f32(key, value);
  return refusal(edited);
}

TEST(Config, GoodFilesAreAccepted) {
  for (const char* name : {"llama", "llama3-ropefreqs", "qwen2", "qwen3", "qwen3-yarn", "qwen35-4b-like"}) {
    EXPECT_EQ(refusal(EditableModel(oracle_path(name))), "accepted") << name;
  }
}

TEST(Config, KnownNumbers) {
  const gguf::File file = gguf::File::open(oracle_path("qwen3"));
  const ModelConfig config = read_model(file)->config();
  EXPECT_EQ(config.architecture, "qwen3");
  EXPECT_EQ(config.n_embd, 160);
  EXPECT_EQ(config.n_heads, 4);
  EXPECT_EQ(config.key_dim, 128);
  EXPECT_EQ(config.value_dim, 128);
  EXPECT_EQ(config.n_vocab, 1600);
  EXPECT_EQ(config.n_ctx_train, 4096);
  EXPECT_FLOAT_EQ(config.norm_eps, 1e-6f);
  EXPECT_TRUE(config.tied);
  const gguf::File untied = gguf::File::open(oracle_path("qwen3-yarn"));
  EXPECT_FALSE(read_model(untied)->config().tied);
}

TEST(Config, B027UnknownArchitectureIsNamedAndNotCalledCorrupt) {
  EditableModel model(oracle_path("llama"));
  model.keys().add_text("general.architecture", "qwen3moe");
  const std::string text = refusal(model);
  EXPECT_TRUE(says(text, {"unsupported: "}));
  EXPECT_TRUE(says(text, {"architecture 'qwen3moe' is not supported; known: llama, qwen2, qwen3, qwen35"}));
  EXPECT_FALSE(says(text, {"corrupt"}));
  EXPECT_FALSE(says(text, {"truncated"}));
  model.keys().add_text("general.architecture", "x\x1b[2J\n");
  EXPECT_TRUE(says(refusal(model), {"is not supported"}));
  EXPECT_FALSE(says(refusal(model), {"\x1b"}));
  model.drop_key("general.architecture");
  EXPECT_TRUE(says(refusal(model), {"general.architecture"}));
}

TEST(Config, HeadCounts) {
  EXPECT_TRUE(says(refusal_with("llama", "llama.attention.head_count", int64_t{0}), {"llama.attention.head_count"}));
  EXPECT_TRUE(says(refusal_with("llama", "llama.attention.head_count", int64_t{-4}), {"llama.attention.head_count"}));
  EXPECT_TRUE(
      says(refusal_with("llama", "llama.attention.head_count_kv", int64_t{0}), {"llama.attention.head_count_kv"}));
  EXPECT_TRUE(says(refusal_with("llama", "llama.attention.head_count_kv", int64_t{3}),
                   {"is 4, expected a multiple of head_count_kv 3"}));
  EditableModel model(oracle_path("llama"));
  const int64_t differing[] = {2, 1, 2};
  model.keys().add_integers("llama.attention.head_count_kv", ValueType::u32, differing);
  EXPECT_TRUE(says(refusal(model), {"unsupported: "}));
  const int64_t zero[] = {2, 0, 2};
  model.keys().add_integers("llama.attention.head_count_kv", ValueType::u32, zero);
  EXPECT_TRUE(says(refusal(model), {"is 0 for a layer"}));
  const int64_t too_few[] = {2, 2};
  model.keys().add_integers("llama.attention.head_count_kv", ValueType::u32, too_few);
  EXPECT_TRUE(says(refusal(model), {"has 2 values, expected one for each of 3 layers"}));
}

TEST(Config, AbsentKvHeadsAreAllHeads) {
  EditableModel model(oracle_path("llama"));
  model.drop_key("llama.attention.head_count_kv");
  const gguf::File file = model.open();
  EXPECT_EQ(read_model(file)->config().n_kv_heads, 4);
}

TEST(Config, LayersAndWidths) {
  EXPECT_TRUE(says(refusal_with("llama", "llama.block_count", int64_t{0}), {"llama.block_count"}));
  EXPECT_TRUE(says(refusal_with("llama", "llama.block_count", int64_t{513}), {"llama.block_count"}));
  EXPECT_TRUE(says(refusal_with("llama", "llama.embedding_length", int64_t{0}), {"llama.embedding_length"}));
  EXPECT_TRUE(
      says(refusal_with("llama", "llama.feed_forward_length", int64_t{1} << 40), {"llama.feed_forward_length"}));
  EXPECT_TRUE(says(refusal_with("llama", "llama.attention.key_length", int64_t{31}), {"key_length"}));
  EXPECT_TRUE(says(refusal_with("llama", "llama.expert_count", int64_t{8}), {"mixture-of-experts"}));
}

TEST(Config, RotaryKeys) {
  EXPECT_TRUE(says(refusal_with("qwen3", "qwen3.rope.dimension_count", int64_t{63}), {"is 63, expected even"}));
  EXPECT_TRUE(says(refusal_with("qwen3", "qwen3.rope.dimension_count", int64_t{130}),
                   {"is 130, expected at most the key length 128"}));
  EXPECT_TRUE(says(refusal_with("llama", "llama.rope.dimension_count", int64_t{16}), {"rope.dimension_count"}));
  EXPECT_TRUE(says(refusal_with("qwen2", "qwen2.rope.freq_base", 0.0f), {"qwen2.rope.freq_base"}));
  EXPECT_TRUE(says(refusal_with("qwen2", "qwen2.rope.freq_base", -1.0f), {"qwen2.rope.freq_base"}));
  EXPECT_TRUE(says(refusal_with("qwen2", "qwen2.rope.freq_base", std::numeric_limits<float>::infinity()),
                   {"qwen2.rope.freq_base"}));
  EXPECT_TRUE(says(refusal_with("qwen3-yarn", "qwen3.rope.scaling.factor", 0.5f), {"rope.scaling.factor"}));
  EXPECT_TRUE(says(refusal_with("qwen3-yarn", "qwen3.rope.freq_base", 1.0f), {"qwen3.rope.freq_base"}));
  EditableModel model(oracle_path("qwen3"));
  model.keys().add_text("qwen3.rope.scaling.type", "longrope");
  EXPECT_TRUE(says(refusal(model), {"unsupported: ", "longrope"}));
  model.keys().add_text("qwen3.rope.scaling.type", "spiral");
  EXPECT_TRUE(says(refusal(model), {"qwen3.rope.scaling.type"}));
}

TEST(Config, Epsilon) {
  EXPECT_TRUE(says(refusal_with("llama", "llama.attention.layer_norm_rms_epsilon", -1.0f), {"rms_epsilon"}));
  EXPECT_TRUE(says(refusal_with("llama", "llama.attention.layer_norm_rms_epsilon", std::nanf("")), {"rms_epsilon"}));
  EditableModel model(oracle_path("llama"));
  model.drop_key("llama.attention.layer_norm_rms_epsilon");
  EXPECT_TRUE(says(refusal(model), {"key 'llama.attention.layer_norm_rms_epsilon' is missing"}));
}

TEST(Config, DeltaNetKeys) {
  const std::string name = "qwen35-4b-like";
  EXPECT_TRUE(says(refusal_with(name, "qwen35.ssm.group_count", int64_t{0}), {"qwen35.ssm.group_count"}));
  EXPECT_TRUE(says(refusal_with(name, "qwen35.ssm.group_count", int64_t{3}), {"multiple of ssm.group_count 3"}));
  EXPECT_TRUE(says(refusal_with(name, "qwen35.ssm.inner_size", int64_t{500}), {"qwen35.ssm.inner_size"}));
  EXPECT_TRUE(says(refusal_with(name, "qwen35.ssm.conv_kernel", int64_t{1}), {"qwen35.ssm.conv_kernel"}));
  EXPECT_TRUE(says(refusal_with(name, "qwen35.nextn_predict_layers", int64_t{4}), {"nextn_predict_layers"}));
  EXPECT_TRUE(says(refusal_with(name, "qwen35.full_attention_interval", int64_t{0}), {"full_attention_interval"}));
  EXPECT_TRUE(says(refusal_with(name, "qwen35.attention.value_length", int64_t{128}), {"value_length"}));
  EditableModel model(oracle_path(name));
  model.drop_key("qwen35.ssm.state_size");
  model.drop_key("qwen35.ssm.inner_size");
  EXPECT_TRUE(says(refusal(model), {"'qwen35.ssm.state_size' is missing", "'qwen35.ssm.inner_size' is missing"}));
}

TEST(Config, LayerKindsMustAgreeWithHeadCounts) {
  EditableModel model(oracle_path("qwen35-4b-like"));
  const int64_t kv_heads[] = {0, 0, 1, 0};  // layer 3 is the attention layer
  model.keys().add_integers("qwen35.attention.head_count_kv", ValueType::i32, kv_heads);
  EXPECT_TRUE(says(refusal(model), {"layer 3"}));
  const int64_t recurrent[] = {1, 1, 0, 1};
  model.keys().add_integers("qwen35.attention.recurrent_layers", ValueType::i32, recurrent);
  EXPECT_EQ(refusal(model), "accepted");
  const int64_t short_list[] = {1, 1, 0};
  model.keys().add_integers("qwen35.attention.recurrent_layers", ValueType::i32, short_list);
  EXPECT_TRUE(says(refusal(model), {"recurrent_layers"}));
}

TEST(Config, RotarySections) {
  const auto with = [](std::vector<int64_t> sections) {
    EditableModel model(oracle_path("qwen35-4b-like"));
    model.keys().add_integers("qwen35.rope.dimension_sections", ValueType::i32, sections);
    return refusal(model);
  };
  EXPECT_EQ(with({11, 11, 10}), "accepted");
  EXPECT_EQ(with({11, 11, 10, 0}), "accepted");
  EXPECT_TRUE(says(with({11, 11}), {"has 2 values, expected 3 or 4"}));
  EXPECT_TRUE(says(with({11, 11, 10, 0, 0}), {"has 5 values, expected 3 or 4"}));
  EXPECT_TRUE(says(with({0, 0, 0, 0}), {"is all zero"}));
  EXPECT_TRUE(says(with({11, -11, 10, 0}), {"holds -11"}));
  EXPECT_TRUE(says(with({8, 8, 8, 8}), {"fourth position component"}));
}

TEST(Config, AllProblemsInOneLine) {
  EditableModel model(oracle_path("llama"));
  model.keys().add_integer("llama.attention.head_count", ValueType::u32, 0);
  model.keys().add_f32("llama.rope.freq_base", std::nanf(""));
  model.keys().add_text("llama.embedding_length", "wide");
  model.drop_key("llama.feed_forward_length");
  const std::string text = refusal(model);
  for (const char* key :
       {"llama.attention.head_count", "llama.rope.freq_base", "llama.embedding_length", "llama.feed_forward_length"}) {
    EXPECT_TRUE(says(text, {key}));
  }
  EXPECT_EQ(text.find(".gguf:"), text.rfind(".gguf:")) << "the file is named once: " << text;
}

}  // namespace
}  // namespace kz
