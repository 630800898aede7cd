// Our quantiser on the built-in model, and what it refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "core/blocks.h"
#include "core/half.h"
#include "gguf/file.h"
#include "gguf/writer.h"
#include "support/numbers.h"
#include "tiny/variants.h"

namespace kz::testing {
namespace {

namespace fs = std::filesystem;

class Quantize : public ::testing::Test {
 protected:
  Quantize() : folder_(fs::temp_directory_path() / ("kazeia-quantize-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~Quantize() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static QuantizeOptions to(const std::string& type) {
    QuantizeOptions options;
    options.type = type;
    return options;
  }
  static std::string message_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  static uint64_t fnv1a(const std::string& bytes) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
    return hash;
  }
  static gguf::Writer::Fill floats(std::vector<float> values) {
    return [values = std::move(values)](const auto& put) { put(std::as_bytes(std::span(values))); };
  }
  /// A file with one matrix of that many columns, and the head that every recipe looks for.
  std::string file_with(const std::string& tensor, int64_t cols, std::vector<float> values) const {
    gguf::Writer writer;
    writer.add_text("general.architecture", "llama");
    const std::vector<int64_t> ne = {cols, static_cast<int64_t>(values.size()) / cols};
    writer.add_tensor(tensor, DType::f32, ne, floats(std::move(values)));
    writer.write(path("in.gguf"));
    return path("in.gguf");
  }

 private:
  fs::path folder_;
};

TEST_F(Quantize, MakesTheFilesOfTheStockToolByteForByte) {
  quantize(tiny_f16(), path("q4_0.gguf"), to("Q4_0"));
  EXPECT_TRUE(read_bytes(path("q4_0.gguf")) == read_bytes(tiny_q4_0()));
  // The stock tool's other two files are not kept here; these are their FNV-1a hashes.
  quantize(tiny_f16(), path("q8_0.gguf"), to("Q8_0"));
  EXPECT_EQ(fnv1a(read_bytes(path("q8_0.gguf"))), 0x3d2144e064abe30eu);
  quantize(tiny_f16(), path("q4_k_m.gguf"), to("Q4_K_M"));
  EXPECT_EQ(fnv1a(read_bytes(path("q4_k_m.gguf"))), 0x97c077260ecb175eu);
}

TEST_F(Quantize, ThreadsDoNotMatter) {
  QuantizeOptions one = to("q4_k_m");
  one.n_threads = 1;
  QuantizeOptions three = to("Q4_K_M");
  three.n_threads = 3;
  const QuantizeResult result = quantize(tiny_f16(), path("one.gguf"), one);
  quantize(tiny_f16(), path("three.gguf"), three);
  EXPECT_TRUE(read_bytes(path("one.gguf")) == read_bytes(path("three.gguf")));
  EXPECT_EQ(result.target_bytes, static_cast<int64_t>(fs::file_size(path("one.gguf"))));
  EXPECT_EQ(result.source_bytes, static_cast<int64_t>(fs::file_size(tiny_f16())));
  EXPECT_TRUE(result.fallbacks.empty());
}

TEST_F(Quantize, TypesOfTheMix) {
  quantize(tiny_f16(), path("out.gguf"), to("Q4_K_M"));
  const gguf::File file = gguf::File::open(path("out.gguf"));
  const auto type = [&](const std::string& name) { return dtype_name(file.find_tensor(name)->dtype); };
  EXPECT_EQ(type("token_embd.weight"), "Q6_K");
  EXPECT_EQ(type("blk.0.attn_qkv.weight"), "Q6_K");
  EXPECT_EQ(type("blk.1.attn_qkv.weight"), "Q4_K");
  EXPECT_EQ(type("blk.3.attn_v.weight"), "Q6_K");
  EXPECT_EQ(type("blk.6.attn_qkv.weight"), "Q6_K");
  EXPECT_EQ(type("blk.8.attn_v.weight"), "Q6_K");
  for (const int layer : {0, 3, 6, 7, 8}) EXPECT_EQ(type("blk." + std::to_string(layer) + ".ffn_down.weight"), "Q6_K");
  for (const int layer : {1, 2, 4, 5}) EXPECT_EQ(type("blk." + std::to_string(layer) + ".ffn_down.weight"), "Q4_K");
  EXPECT_EQ(type("blk.0.ssm_conv1d.weight"), "F32");
  EXPECT_EQ(type("output_norm.weight"), "F32");
  EXPECT_EQ(file.integer("general.file_type", 0, 100), 15);
  EXPECT_EQ(file.integer("general.quantization_version", 0, 100), 2);
}

TEST_F(Quantize, PureGivesEveryMatrixTheType) {
  QuantizeOptions pure = to("Q4_0");
  pure.pure = true;
  quantize(tiny_f16(), path("out.gguf"), pure);
  const gguf::File file = gguf::File::open(path("out.gguf"));
  EXPECT_EQ(file.find_tensor("token_embd.weight")->dtype, DType::q4_0);
}

TEST_F(Quantize, EveryTypeRuns) {
  for (const char* type : {"Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K", "Q5_K_M"}) {
    quantize(tiny_f16(), path("out.gguf"), to(type));
    const auto engine = open_engine(path("out.gguf"));
    const auto prompt = engine->chatml_prompt("What is the capital of Peru?", "", false);
    EXPECT_EQ(engine->open_session(f32_session())->generate(prompt, greedy(20)).text, "The capital of Peru is Lima.")
        << type;
  }
}

// Case B151: a row length that the type cannot divide.
TEST_F(Quantize, FallsBackByRowLength) {
  const std::string in = file_with("blk.0.attn_q.weight", 4544, std::vector<float>(4544 * 2, 0.5f));
  const auto type_after = [&](const std::string& type) {
    const QuantizeResult result = quantize(in, path("out.gguf"), to(type));
    EXPECT_EQ(result.fallbacks.size(), 1u);
    EXPECT_NE(result.fallbacks.at(0).find("4544"), std::string::npos);
    return gguf::File::open(path("out.gguf")).find_tensor("blk.0.attn_q.weight")->dtype;
  };
  EXPECT_EQ(type_after("Q4_K"), DType::q5_0);
  EXPECT_EQ(type_after("Q5_K"), DType::q5_1);
  EXPECT_EQ(type_after("Q6_K"), DType::q8_0);

  const std::string odd = file_with("blk.0.attn_q.weight", 33, std::vector<float>(33 * 2, 0.5f));
  for (const char* type : {"Q4_0", "Q8_0", "Q4_K"}) {
    const QuantizeResult result = quantize(odd, path("odd.gguf"), to(type));
    EXPECT_EQ(result.fallbacks.size(), 1u);
    EXPECT_EQ(gguf::File::open(path("odd.gguf")).find_tensor("blk.0.attn_q.weight")->dtype, DType::f16);
  }
}

// Case B149: values that no block can hold.
TEST_F(Quantize, NonFiniteValuesAreNamed) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const char* type : {"Q4_0", "Q6_K", "Q4_K", "Q8_0"}) {
      std::vector<float> values(256 * 5, 0.25f);
      values[256 * 3 + 17] = bad;
      values[256 * 4 + 2] = bad;
      const std::string in = file_with("blk.2.ffn_up.weight", 256, values);
      const std::string text = message_of([&] { quantize(in, path("never.gguf"), to(type)); });
      EXPECT_NE(text.find("blk.2.ffn_up.weight"), std::string::npos) << text;
      EXPECT_NE(text.find("row 3: non-finite value"), std::string::npos) << text;
      EXPECT_NE(text.find("at column 17"), std::string::npos) << text;
      EXPECT_FALSE(fs::exists(path("never.gguf")));
    }
  }
}

TEST_F(Quantize, ValuesTooLargeForTheTypeAreNamed) {
  std::vector<float> values(256 * 5, 0.25f);
  values[256 * 3 + 13] = 30720000.0f;
  values[256 * 4 + 2] = 30720000.0f;
  const std::string in = file_with("blk.2.ffn_up.weight", 256, values);
  const std::string text = message_of([&] { quantize(in, path("never.gguf"), to("Q8_0")); });
  for (const std::string& part : {in, std::string("tensor 'blk.2.ffn_up.weight': row 3: value at column 13"),
                                  std::string("too large for Q8_0")}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_FALSE(fs::exists(path("never.gguf")));
}

TEST_F(Quantize, AFileWithoutTensorsIsRefused) {
  const std::string text =
      message_of([&] { quantize(data("tokenizer/gpt-2-vocab.gguf"), path("never.gguf"), to("Q8_0")); });
  EXPECT_NE(text.find("no tensors"), std::string::npos) << text;
  EXPECT_FALSE(fs::exists(path("never.gguf")));
}

// The target must be none of the files that the source is spread over.
TEST_F(Quantize, NoShardOfTheSourceIsOverwritten) {
  const std::string parts[] = {path("model-00001-of-00002.gguf"), path("model-00002-of-00002.gguf")};
  for (int i = 0; i < 2; ++i) {
    gguf::Writer writer;
    writer.add_text("general.architecture", "llama");
    writer.add_integer("split.no", gguf::ValueType::u16, i);
    writer.add_integer("split.count", gguf::ValueType::u16, 2);
    writer.add_integer("split.tensors.count", gguf::ValueType::i32, 2);
    const std::vector<int64_t> ne = {32, 2};
    writer.add_tensor("blk." + std::to_string(i) + ".ffn_up.weight", DType::f32, ne,
                      floats(std::vector<float>(64, 0.5f)));
    writer.write(parts[i]);
  }
  const std::string before[] = {read_bytes(parts[0]), read_bytes(parts[1])};
  fs::create_symlink(parts[1], path("symbolic.gguf"));
  fs::create_hard_link(parts[1], path("hard.gguf"));
  const std::string detour = path("./model-00002-of-00002.gguf");
  for (const std::string& target : {parts[0], parts[1], path("symbolic.gguf"), path("hard.gguf"), detour}) {
    const std::string text = message_of([&] { quantize(parts[0], target, to("Q8_0")); });
    EXPECT_NE(text.find("same file"), std::string::npos) << target << ": " << text;
  }
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(read_bytes(parts[i]) == before[i]) << parts[i];
  quantize(parts[0], path("out.gguf"), to("Q8_0"));
  EXPECT_EQ(gguf::File::open(path("out.gguf")).tensors().size(), 2u);
}

// Case B155: quantising what is quantised already.
TEST_F(Quantize, RefusesToRequantiseUnlessAsked) {
  quantize(tiny_f16(), path("q8.gguf"), to("Q8_0"));
  const std::string text = message_of([&] { quantize(path("q8.gguf"), path("never.gguf"), to("Q4_0")); });
  EXPECT_NE(text.find("--allow-requantize"), std::string::npos) << text;
  EXPECT_FALSE(fs::exists(path("never.gguf")));

  QuantizeOptions allowed = to("Q4_0");
  allowed.allow_requantize = true;
  quantize(path("q8.gguf"), path("q4.gguf"), allowed);
  const gguf::File source = gguf::File::open(path("q8.gguf"));
  const gguf::File target = gguf::File::open(path("q4.gguf"));
  const std::string name = "blk.5.ffn_down.weight";
  const Tensor from = source.data(*source.find_tensor(name));
  const Tensor got = target.data(*target.find_tensor(name));
  ASSERT_EQ(got.dtype, DType::q4_0);
  const int64_t cols = from.ne[0];
  std::vector<float> row(static_cast<size_t>(cols));
  std::vector<std::byte> wanted(static_cast<size_t>(row_bytes(DType::q4_0, cols)));
  for (int64_t i = 0; i < from.ne[1]; ++i) {
    dequantise_row(from.dtype, from.data + i * from.stride[1], row.data(), cols);
    quantise_row(DType::q4_0, row.data(), wanted.data(), cols);
    ASSERT_EQ(std::memcmp(wanted.data(), got.data + i * got.stride[1], wanted.size()), 0) << "row " << i;
  }
}

TEST_F(Quantize, BadRequestsLeaveFilesAlone) {
  fs::copy_file(tiny_q4_0(), path("model.gguf"));
  const std::string before = read_bytes(path("model.gguf"));
  QuantizeOptions options = to("Q8_0");
  options.allow_requantize = true;
  EXPECT_NE(message_of([&] { quantize(path("model.gguf"), path("model.gguf"), options); }).find("same file"),
            std::string::npos);
  fs::create_symlink(path("model.gguf"), path("link.gguf"));
  EXPECT_NE(message_of([&] { quantize(path("model.gguf"), path("link.gguf"), options); }).find("same file"),
            std::string::npos);
  EXPECT_TRUE(read_bytes(path("model.gguf")) == before);

  const std::string text = message_of([&] { quantize(tiny_f16(), path("x.gguf"), to("Q4_K_XXL")); });
  EXPECT_NE(text.find("Q4_K_XXL"), std::string::npos) << text;
  EXPECT_NE(text.find("Q4_K_M"), std::string::npos) << text;
  EXPECT_NE(message_of([&] { quantize(path("absent.gguf"), path("x.gguf"), to("Q4_0")); }), "no error");
  QuantizeOptions threads = to("Q4_0");
  threads.n_threads = -3;
  EXPECT_NE(message_of([&] { quantize(tiny_f16(), path("x.gguf"), threads); }).find("-3"), std::string::npos);
  EXPECT_FALSE(fs::exists(path("x.gguf")));

  // A target that had another content keeps it when the run fails.
  const std::string in = file_with("blk.0.attn_q.weight", 32, std::vector<float>(32, NAN));
  EXPECT_NE(message_of([&] { quantize(in, path("model.gguf"), to("Q4_0")); }), "no error");
  EXPECT_TRUE(read_bytes(path("model.gguf")) == before);
}

}  // namespace
}  // namespace kz::testing
