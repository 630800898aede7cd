// What the writer makes is what it was told, and what was read is written back as the same bytes.
#include "gguf/writer.h"

#include <algorithm>
#include <array>
#include <limits>

#include <gtest/gtest.h>

#include "gguf/test_bytes.h"

namespace kz::gguf {
namespace {

constexpr std::array<int64_t, 1> kShape{3};

std::vector<std::string> gguf_files_of(const std::string& folder) {
  std::vector<std::string> paths;
  if (!std::filesystem::is_directory(folder)) return paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".gguf") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(Writer, CopiesEveryModelOfTheProjectByteForByte) {
  std::vector<std::string> paths = gguf_files_of(KZ_TEST_DATA);
  const auto built_in = gguf_files_of(KZ_SOURCE_DIR "/models");
  ASSERT_FALSE(built_in.empty());
  paths.insert(paths.end(), built_in.begin(), built_in.end());
  ASSERT_GE(paths.size(), 13u);
  for (const std::string& path : paths) {
    const File file = File::open(path);
    const Bytes copy = Writer::copy_of(file).bytes();
    EXPECT_TRUE(copy == read_bytes(path)) << path << " (" << copy.size() << " bytes)";
  }
}

TEST(Writer, CopiesThroughAFile) {
  const Folder folder;
  const std::string source = KZ_SOURCE_DIR "/models/kazeia-tiny-q4_0.gguf";
  const File file = File::open(source);
  uint64_t last = 0;
  uint64_t whole = 0;
  Writer::copy_of(file).write(folder.file("copy.gguf"), [&](uint64_t done, uint64_t total) {
    EXPECT_GE(done, last);
    last = done;
    whole = total;
  });
  EXPECT_EQ(last, whole);
  EXPECT_EQ(whole, file.size_bytes());
  EXPECT_TRUE(read_bytes(folder.file("copy.gguf")) == read_bytes(source));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.file("")), {}), 1);
}

TEST(Writer, CopiesVersionAlignmentAndPadding) {
  for (const int version : {2, 3}) {
    for (const uint64_t alignment : {8u, 32u, 256u}) {
      for (const bool pad : {true, false}) {
        Writer writer = small_writer(version, alignment);
        writer.set_pad_end(pad);
        const Bytes bytes = writer.bytes();
        const File file = File::view(bytes, "m.gguf");
        EXPECT_EQ(file.padded_end(), pad);
        EXPECT_TRUE(Writer::copy_of(file).bytes() == bytes);
      }
    }
  }
}

TEST(Writer, CopiesAFileWithoutTensors) {
  for (const bool pad : {true, false}) {
    Writer writer;
    writer.add_text("k", "v");
    writer.set_pad_end(pad);
    const Bytes bytes = writer.bytes();
    EXPECT_EQ(bytes.size(), pad ? 64u : 46u);
    EXPECT_TRUE(Writer::copy_of(File::view(bytes, "m.gguf")).bytes() == bytes);
  }
}

TEST(Writer, MakesTheBytesOfTheFormat) {
  Writer writer(2);
  writer.add_integer("n", ValueType::u16, 0x0102);
  writer.add_tensor("t", DType::f32, kShape, counting(12));
  writer.set_pad_end(false);
  const Bytes expected = RawFile()
                             .header(2, 1, 1)
                             .key("n", ValueType::u16)
                             .number(uint16_t{0x0102})
                             .tensor("t", {3}, 0, 0)
                             .pad()
                             .raw(std::string_view("\0\1\2\3\4\5\6\7\x08\x09\x0a\x0b", 12));
  EXPECT_TRUE(writer.bytes() == expected);
}

TEST(Writer, ReplacesAKeyInItsPlace) {
  Writer writer = small_writer();
  writer.add_text("n.u8", "now a text");
  const Bytes bytes = writer.bytes();
  const File file = File::view(bytes, "m.gguf");
  EXPECT_EQ(file.keys().size(), 8u);
  EXPECT_EQ(file.keys()[1].key, "n.u8");
  EXPECT_EQ(file.text("n.u8"), "now a text");
}

TEST(Writer, WritesItsAlignmentUnlessAKeySaysIt) {
  const Bytes bytes = Writer(3, 64).bytes();
  EXPECT_EQ(File::view(bytes, "m.gguf").integer("general.alignment", 64, 64), 64);
  const Bytes none = Writer(3, 32).bytes();
  EXPECT_FALSE(File::view(none, "m.gguf").has("general.alignment"));
  expect_has(error_of([] { Writer(3, 48).bytes(); }, ErrorCode::bad_argument), "found 48, expected a power of two");
}

TEST(Writer, RefusesValuesThatTheirTypeCannotHold) {
  struct Case {
    ValueType type;
    int64_t lowest;
    int64_t highest;
  };
  using Limits = std::numeric_limits<int64_t>;
  for (const Case& c : {Case{ValueType::u8, 0, 255}, Case{ValueType::i8, -128, 127}, Case{ValueType::u16, 0, 65535},
                        Case{ValueType::i16, -32768, 32767}, Case{ValueType::u32, 0, 4294967295},
                        Case{ValueType::i32, -2147483648, 2147483647}}) {
    Writer writer;
    const std::array<int64_t, 2> both{c.lowest, c.highest};
    writer.add_integers("k", c.type, both);
    const Bytes bytes = writer.bytes();
    EXPECT_EQ(File::view(bytes, "m.gguf").integers("k"), (std::vector<int64_t>{c.lowest, c.highest}));
    for (const int64_t wrong : {c.lowest - 1, c.highest + 1}) {
      expect_has(error_of([&] { writer.add_integer("k", c.type, wrong); }, ErrorCode::bad_argument), "key 'k': found");
    }
  }
  Writer writer;
  error_of([&] { writer.add_integer("k", ValueType::u64, -1); }, ErrorCode::bad_argument);
  error_of([&] { writer.add_integer("k", ValueType::f32, 1); }, ErrorCode::bad_argument);
  error_of([&] { writer.add_integer("k", ValueType::string, 1); }, ErrorCode::bad_argument);
  writer.add_integer("k", ValueType::i64, Limits::min());
}

TEST(Writer, RefusesShapesThatHaveNoSize) {
  Writer writer;
  const auto refused = [&](DType dtype, const std::vector<int64_t>& ne) {
    expect_has(error_of([&] { writer.add_tensor("t", dtype, ne, {}); }, ErrorCode::bad_argument), "tensor 't': found");
  };
  refused(DType::q4_0, {33});
  refused(DType::f32, {-1});
  refused(DType::f32, {1, -1});
  refused(DType::f32, {1, 1, 1, 1, 1});
  refused(DType::f32, {int64_t{1} << 62, 4});
}

TEST(Writer, AFillMustGiveExactlyItsBytes) {
  for (const size_t given : {0u, 11u, 13u, 100u}) {
    Writer writer;
    writer.add_tensor("t", DType::f32, kShape, counting(given));
    expect_has(error_of([&] { writer.bytes(); }, ErrorCode::bad_argument),
               "tensor 't': found " + std::to_string(given) + " bytes of data, expected 12");
  }
}

TEST(Writer, TakesPiecesAndZeros) {
  Writer writer;
  writer.add_tensor("pieces", DType::f32, kShape, [](const auto& put) {
    for (int i = 0; i < 12; ++i) put(Bytes{static_cast<std::byte>(i)});
  });
  const std::array<int64_t, 2> large{1000, 7};
  writer.add_tensor("zeros", DType::f32, large, {});
  const Bytes bytes = writer.bytes();
  const File file = File::view(bytes, "m.gguf");
  EXPECT_EQ(file.data(*file.find_tensor("pieces")).data[11], std::byte{11});
  const TensorInfo& zeros = *file.find_tensor("zeros");
  const auto* at = file.data(zeros).data;
  EXPECT_TRUE(std::all_of(at, at + zeros.size_bytes, [](std::byte b) { return b == std::byte{0}; }));
}

TEST(Writer, KeepsTheOldFileWhenItFails) {
  const Folder folder;
  const std::string path = folder.add("m.gguf", small_writer().bytes());
  const Bytes old = read_bytes(path);
  Writer writer;
  writer.add_tensor("good", DType::f32, kShape, counting(12));
  writer.add_tensor("bad", DType::f32, kShape, [](const auto&) { throw Error(ErrorCode::cancelled, "stopped"); });
  error_of([&] { writer.write(path); }, ErrorCode::cancelled);
  EXPECT_TRUE(read_bytes(path) == old);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.file("")), {}), 1);
}

}  // namespace
}  // namespace kz::gguf
