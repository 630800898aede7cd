// Case B157: weights that make a forward pass meaningless are named, and the session survives.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <limits>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "support/engines.h"
#include "support/numbers.h"

namespace kz::testing {
namespace {

namespace fs = std::filesystem;
using Change = std::function<void(std::vector<std::byte>& bytes)>;

class Damaged : public ::testing::Test {
 protected:
  ~Damaged() override {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }

  /// A model (the built-in one, F16) with one tensor changed.
  std::string with(const std::string& tensor, const Change& change, const std::string& model = tiny_f16()) const {
    const gguf::File file = gguf::File::open(model);
    gguf::Writer writer(file.version(), file.alignment());
    for (const gguf::KeyValue& kv : file.keys()) writer.add_raw(kv);
    for (const gguf::TensorInfo& info : file.tensors()) {
      const std::span<const int64_t> ne(info.ne.data(), static_cast<size_t>(info.n_dims));
      writer.add_tensor(info.name, info.dtype, ne, [&file, &info, &tensor, &change](const auto& put) {
        const std::byte* data = file.data(info).data;
        std::vector<std::byte> bytes(data, data + info.size_bytes);
        if (info.name == tensor) change(bytes);
        put(bytes);
      });
    }
    writer.write(path_);
    return path_;
  }

  static std::string refusal(Session& session, const std::vector<int32_t>& tokens) {
    try {
      session.sync(tokens);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_file);
      return error.what();
    }
    return "no error";
  }

  const std::string path_ =
      (fs::temp_directory_path() / ("kazeia-damaged-" + std::to_string(getpid()) + ".gguf")).string();
};

TEST_F(Damaged, ANormOfZerosGivesEqualLogits) {
  const auto engine =
      open_engine(with("output_norm.weight", [](auto& bytes) { std::ranges::fill(bytes, std::byte{0}); }));
  const auto session = engine->open_session(f32_session());
  const std::string text = refusal(*session, {300, 301, 302});
  EXPECT_NE(text.find("1600 logits at position 2"), std::string::npos) << text;
  EXPECT_NE(text.find(path_), std::string::npos) << text;
  EXPECT_TRUE(session->history().empty());
  EXPECT_TRUE(session->logits().empty());
  EXPECT_THROW(session->generate(std::vector<int32_t>{300}, greedy(5)), Error);
  EXPECT_THROW(engine->evaluate(std::vector<int32_t>{300}, f32_session(), [](int64_t, std::span<const float>) {}),
               Error);
}

TEST_F(Damaged, ANanInALayerIsNamed) {
  const auto engine = open_engine(with("blk.0.attn_norm.weight", [](auto& bytes) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(bytes.data() + 4 * 17, &nan, 4);
  }));
  const auto session = engine->open_session(f32_session());
  const std::string text = refusal(*session, {300, 301, 302});
  EXPECT_NE(text.find("expected a finite number"), std::string::npos) << text;
  EXPECT_NE(text.find("position 2"), std::string::npos) << text;
  EXPECT_TRUE(session->history().empty());
}

TEST_F(Damaged, ASessionStaysUsableAfterARefusedForward) {
  // An untied model: only a forward that reads token 700 meets its row of the embedding.
  const auto engine = open_engine(with(
      "token_embd.weight",
      [](auto& bytes) {
        const uint16_t nan = 0x7e00;
        for (size_t i = 0; i < 128; ++i) std::memcpy(bytes.data() + (700 * 128 + i) * 2, &nan, 2);
      },
      data("oracle/qwen35-27b-like.f16.gguf")));
  const auto session = engine->open_session(f32_session());
  const std::vector<int32_t> good = {300, 301, 302, 303};
  session->sync(good);
  const std::vector<float> wanted(session->logits().begin(), session->logits().end());
  EXPECT_NE(refusal(*session, {300, 301, 302, 303, 304, 700}).find("finite"), std::string::npos);
  EXPECT_TRUE(session->history().empty());
  EXPECT_TRUE(session->logits().empty());
  EXPECT_EQ(session->sync(good), 0);
  EXPECT_TRUE(same_bits(session->logits(), wanted));
}

}  // namespace
}  // namespace kz::testing
