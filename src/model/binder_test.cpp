// Files whose tensors are wrong: one error names all of them, and nothing is imported.
#include "model/binder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/testing.h"

namespace kz {
namespace {

using testing::EditableModel;
using testing::says;

std::string oracle_path(const std::string& name) { return std::string(KZ_TEST_DATA) + "/oracle/" + name + ".f16.gguf"; }

/// The message of the error that binding gives, after "CODE: "; the check without a backend must say the same.
std::string refusal(const EditableModel& model) {
  const gguf::File file = model.open();
  const std::unique_ptr<Backend> reference = make_reference_backend();
  std::string texts[2];
  for (const bool import : {false, true}) {
    const std::unique_ptr<Model> read = read_model(file);
    try {
      bind_model(*read, file, import ? reference.get() : nullptr);
      texts[import] = "accepted";
    } catch (const Error& error) {
      texts[import] =
          std::string(error.code() == ErrorCode::unsupported ? "unsupported: " : "bad_file: ") + error.what();
    }
  }
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0].find('\n'), std::string::npos);
  return texts[0];
}

TEST(BinderTest, GoodFilesAreAcceptedWithoutNotes) {
  for (const char* name : {"llama", "llama3-ropefreqs", "qwen2", "qwen3", "qwen3-yarn", "qwen35-08b-like",
                           "qwen35-4b-like", "qwen35-27b-like"}) {
    const gguf::File file = gguf::File::open(oracle_path(name));
    const std::unique_ptr<Model> model = read_model(file);
    bind_model(*model, file, nullptr);
    EXPECT_TRUE(model->notes().empty()) << name << ": " << model->notes()[0];
    EXPECT_EQ(model->float_bytes(), 0);
    bind_model(*model, file, make_reference_backend().get());
    EXPECT_GT(model->float_bytes(), 0);
  }
}

TEST(BinderTest, MissingTensorsAreNamedAllAtOnce) {
  EditableModel model(oracle_path("qwen35-4b-like"));
  const char* missing[] = {"output_norm.weight",       "blk.0.ssm_a",
                           "blk.1.ssm_dt.bias",        "blk.2.attn_qkv.weight",
                           "blk.3.attn_q_norm.weight", "blk.3.post_attention_norm.weight"};
  for (const char* name : missing) model.drop(name);
  const std::string text = refusal(model);
  EXPECT_TRUE(says(text, {"bad_file: "}));
  for (const char* name : missing) EXPECT_TRUE(says(text, {std::string("tensor ") + name + " is missing"}));
  EXPECT_TRUE(says(text, {"blk.2.attn_qkv.weight is missing, expected shape {160, 1024}"}));
  EXPECT_EQ(text.find(".gguf"), text.rfind(".gguf")) << "the file is named once: " << text;
}

TEST(BinderTest, MissingEmbedding) {
  EditableModel model(oracle_path("qwen2"));
  model.drop("token_embd.weight");
  EXPECT_TRUE(says(refusal(model), {"tensor token_embd.weight is missing"}));
}

TEST(BinderTest, LongListsAreCutAndCounted) {
  EditableModel model(oracle_path("qwen35-08b-like"));
  const size_t dropped = model.drop_all("blk.");
  const std::string text = refusal(model);
  EXPECT_TRUE(says(text, {"; and " + std::to_string(dropped - Problems::kMaxShown) + " more problems"}));
  EXPECT_LT(text.size(), 3000u);
}

TEST(BinderTest, WrongShapesSayFoundAndExpected) {
  EditableModel model(oracle_path("qwen3"));
  model.set("blk.0.attn_q.weight", {160, 256}, std::vector<float>(160 * 256));
  model.set("blk.1.attn_k_norm.weight", {64}, std::vector<float>(64));
  model.set("output_norm.weight", {160, 2}, std::vector<float>(320));
  const std::string text = refusal(model);
  EXPECT_TRUE(says(text, {"tensor blk.0.attn_q.weight has shape {160, 256}, expected {160, 512}"}));
  EXPECT_TRUE(says(text, {"tensor blk.1.attn_k_norm.weight has shape {64}, expected {128}"}));
  EXPECT_TRUE(says(text, {"tensor output_norm.weight has shape {160, 2}, expected {160}"}));
}

TEST(BinderTest, TransposedMatrixIsRefused) {
  EditableModel model(oracle_path("llama"));
  std::swap(model.tensor("blk.0.ffn_down.weight").ne[0], model.tensor("blk.0.ffn_down.weight").ne[1]);
  EXPECT_TRUE(says(refusal(model), {"blk.0.ffn_down.weight has shape {128, 352}, expected {352, 128}"}));
}

TEST(BinderTest, OptionalTensorsAreCheckedWhenPresent) {
  EditableModel model(oracle_path("llama3-ropefreqs"));
  model.set("blk.0.attn_q.bias", {3}, std::vector<float>(3));
  model.set("rope_freqs.weight", {8}, std::vector<float>(8, 1.0f));
  EXPECT_TRUE(says(refusal(model), {"blk.0.attn_q.bias has shape {3}", "rope_freqs.weight has"}));
  EditableModel zero(oracle_path("llama3-ropefreqs"));
  std::vector<float> divisors = zero.floats("rope_freqs.weight");
  divisors[1] = 0;
  zero.set("rope_freqs.weight", {static_cast<int64_t>(divisors.size())}, divisors);
  EXPECT_TRUE(says(refusal(zero), {"rope_freqs.weight holds 0, expected finite values above 0"}));
}

TEST(BinderTest, Qwen2NeedsItsBiases) {
  EditableModel model(oracle_path("qwen2"));
  model.drop("blk.1.attn_v.bias");
  EXPECT_TRUE(says(refusal(model), {"tensor blk.1.attn_v.bias is missing"}));
}

TEST(BinderTest, VocabularyMustFitTheEmbedding) {
  EditableModel model(oracle_path("llama"));
  std::vector<std::string_view> tokens(1599, "x");
  model.keys().add_texts("tokenizer.ggml.tokens", tokens);
  EXPECT_TRUE(says(refusal(model), {"token_embd.weight has shape {128, 1600}, expected {128, 1599}"}));
}

TEST(BinderTest, B007ZeroSizeTensorIsRefusedWhereItIsNeeded) {
  EditableModel model(oracle_path("llama"));
  model.drop("blk.1.ffn_up.weight");
  model.add({"blk.1.ffn_up.weight", DType::f16, {128, 0}, {}});
  EXPECT_TRUE(says(refusal(model), {"blk.1.ffn_up.weight has shape {128, 0}, expected {128, 352}"}));
  EditableModel harmless(oracle_path("llama"));
  harmless.add({"extra.weight", DType::f16, {128, 0}, {}});
  EXPECT_EQ(refusal(harmless), "accepted");
}

TEST(BinderTest, ScaleTensorsAreRefusedNotIgnored) {
  EditableModel model(oracle_path("qwen3"));
  model.set("blk.1.attn_q.scale", {1}, std::vector<float>{0.5f});
  EXPECT_TRUE(says(refusal(model), {"unsupported: ", "blk.1.attn_q.scale"}));
}

TEST(BinderTest, TypesThatNobodyReadsAreUnsupportedNotCorrupt) {
  EditableModel model(oracle_path("qwen35-4b-like"));
  model.drop("blk.0.ssm_out.weight");
  model.add({"blk.0.ssm_out.weight", DType::iq2_xxs, {512, 160}, std::vector<std::byte>(160 * 2 * 66)});
  model.drop("blk.1.ssm_out.weight");
  model.add({"blk.1.ssm_out.weight", DType::nvfp4, {512, 160}, std::vector<std::byte>(160 * 8 * 36)});
  EXPECT_TRUE(says(refusal(model),
                   {"unsupported: ", "blk.0.ssm_out.weight has type IQ2_XXS", "blk.1.ssm_out.weight has type NVFP4"}));
  EditableModel norm(oracle_path("llama"));
  norm.drop("output_norm.weight");
  norm.add({"output_norm.weight", DType::q8_0, {128}, std::vector<std::byte>(4 * 34)});
  EXPECT_TRUE(says(refusal(norm), {"output_norm.weight has type Q8_0, expected F32, F16 or BF16"}));
}

TEST(BinderTest, UnknownTensorsAreCounted) {
  EditableModel model(oracle_path("qwen2"));
  model.set("mm.0.weight", {4}, std::vector<float>(4));
  const gguf::File file = model.open();
  const std::unique_ptr<Model> read = read_model(file);
  bind_model(*read, file, nullptr);
  ASSERT_EQ(read->notes().size(), 1u);
  EXPECT_EQ(read->notes()[0], "1 tensor that qwen2 does not use is ignored: mm.0.weight");
}

TEST(BinderTest, BlocksOutsideBlockCountGetALineOfTheirOwn) {
  EditableModel model(oracle_path("qwen2"));
  const int64_t n_blocks = model.open().integer("qwen2.block_count", 1, 100);
  model.keys().add_integer("qwen2.block_count", gguf::ValueType::u32, n_blocks - 1);
  model.set("mm.0.weight", {4}, std::vector<float>(4));
  const gguf::File file = model.open();
  const std::unique_ptr<Model> read = read_model(file);
  bind_model(*read, file, nullptr);
  ASSERT_EQ(read->notes().size(), 2u);
  const std::string block = fmt::format("blk.{}", n_blocks - 1);
  EXPECT_TRUE(says(read->notes()[0], {fmt::format("1 of the file's {} blocks", n_blocks), "block_count", block}));
  EXPECT_TRUE(says(read->notes()[1], {"1 tensor that qwen2 does not use is ignored: mm.0.weight"}));
}

TEST(ProblemsTest, UnsupportedOnlyWhenNothingElseIsWrong) {
  Problems problems;
  EXPECT_NO_THROW(problems.raise("m.gguf"));
  problems.add_unsupported("a");
  try {
    problems.raise("m.gguf");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_STREQ(error.what(), "m.gguf: a");
  }
  problems.add("b");
  try {
    problems.raise("m.gguf");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_file);
    EXPECT_STREQ(error.what(), "m.gguf: a; b");
  }
}

}  // namespace
}  // namespace kz
