// Models that are split over several files: names, keys, and what people do with the parts.
#include "gguf/split.h"

#include <array>

#include <fcntl.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "gguf/test_bytes.h"

namespace kz::gguf {
namespace {

constexpr std::array<int64_t, 1> kShape{2};

/// Part `number` (from 0) of `count`; the first carries the model's keys and no tensor.
Writer part(int number, int count, int tensors_total) {
  Writer writer;
  if (number == 0) {
    writer.add_text("general.architecture", "llama");
    writer.add_integer("split.tensors.count", ValueType::i32, tensors_total);
  }
  writer.add_integer("split.no", ValueType::u16, number);
  writer.add_integer("split.count", ValueType::u16, count);
  if (number > 0) {
    const auto letter = static_cast<char>('a' + number);
    writer.add_tensor(std::string("t.") + letter, DType::f32, kShape, [number](const auto& put) {
      const std::array<float, 2> values{static_cast<float>(number), 0.5f};
      put(std::as_bytes(std::span(values)));
    });
  }
  return writer;
}

std::string name_of(int number, int count, const std::string& prefix = "m") {
  return shard_path({prefix, number, count}, number);
}

/// A folder with a good model of three parts, named m-0000N-of-00003.gguf.
struct SplitModel : testing::Test {
  SplitModel() {
    for (int i = 0; i < 3; ++i) folder.add(name_of(i + 1, 3), part(i, 3, 2).bytes());
  }
  std::string path(int number) const { return folder.file(name_of(number, 3)); }
  Folder folder;
};

TEST(ShardName, IsReadFromTheEndOfAPath) {
  const auto name = parse_shard_name("/a b/m-q4-00002-of-00012.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->prefix, "/a b/m-q4");
  EXPECT_EQ(name->number, 2);
  EXPECT_EQ(name->count, 12);
  EXPECT_EQ(shard_path(*name, 11), "/a b/m-q4-00011-of-00012.gguf");
  EXPECT_TRUE(parse_shard_name("x-00001-of-00001.gguf"));
  EXPECT_TRUE(parse_shard_name("x-99999-of-99999.gguf"));
  EXPECT_EQ(parse_shard_name("x-00001-of-00002-00001-of-00003.gguf")->prefix, "x-00001-of-00002");
}

TEST(ShardName, NamesThatOnlyLookLikeShardsAreNone) {
  for (const char* name :
       {"best-of-breed.gguf", "m-00000-of-00004.gguf", "m-00005-of-00004.gguf", "m.gguf", "", "-00001-of-00002.gguf",
        "dir/-00001-of-00002.gguf", "m-00001-of-00000.gguf", "m-0001-of-0002.gguf", "m-000001-of-000002.gguf",
        "m-00001-of-00002.gguf.part", "m-00001-of-00002.GGUF", "m_00001-of-00002.gguf", "m-00001_of_00002.gguf",
        "m-0000a-of-00002.gguf", "m- 0001-of-00002.gguf", "m-+0001-of-00002.gguf", "m-00001-of-00002",
        "m-00001-of-00002.bin"}) {
    EXPECT_FALSE(parse_shard_name(name)) << name;
  }
}

TEST_F(SplitModel, OpensByItsFirstPart) {
  const File file = File::open(path(1));
  EXPECT_EQ(file.n_shards(), 3);
  EXPECT_EQ(file.name(), path(1));
  EXPECT_EQ(file.text("general.architecture"), "llama");
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[1].name, "t.c");
  EXPECT_EQ(file.tensors()[1].shard, 2);
  EXPECT_EQ(*file.data(*file.find_tensor("t.b")).f32(), 1.0f);
  EXPECT_EQ(*file.data(*file.find_tensor("t.c")).f32(), 2.0f);
  uint64_t total = 0;
  for (int i = 1; i <= 3; ++i) total += std::filesystem::file_size(path(i));
  EXPECT_EQ(file.size_bytes(), total);
}

TEST_F(SplitModel, EachPartHasItsOwnAlignment) {
  Writer writer(2, 128);
  writer.add_integer("split.no", ValueType::u16, 2);
  writer.add_integer("split.count", ValueType::u16, 3);
  writer.add_tensor("first", DType::f32, kShape, counting(8));
  writer.add_tensor("second", DType::f32, kShape, counting(8));
  folder.add(name_of(3, 3), writer.bytes());
  folder.add(name_of(1, 3), part(0, 3, 3).bytes());
  const File file = File::open(path(1));
  EXPECT_EQ(file.alignment(), 32u);
  EXPECT_EQ(file.find_tensor("second")->offset, 128u);
  EXPECT_EQ(file.data(*file.find_tensor("second")).data[7], std::byte{7});
}

TEST_F(SplitModel, BecomesOneFileWhenCopied) {
  const File file = File::open(path(1));
  Writer::copy_of(file).write(folder.file("merged.gguf"));
  const File merged = File::open(folder.file("merged.gguf"));
  EXPECT_EQ(merged.n_shards(), 1);
  EXPECT_FALSE(merged.has("split.count"));
  EXPECT_EQ(*merged.data(*merged.find_tensor("t.c")).f32(), 2.0f);
}

TEST_F(SplitModel, AnotherPartSaysWhichFileToOpen) {
  for (const int number : {2, 3}) {
    const std::string text = error_of([&] { File::open(path(number)); });
    expect_has(text, path(number) + ": found part " + std::to_string(number) + " of 3");
    EXPECT_TRUE(text.ends_with("open " + path(1))) << text;
  }
}

TEST_F(SplitModel, PartsJoinedWithCatAreNoModel) {
  Bytes joined = read_bytes(path(1));
  for (const int number : {2, 3}) {
    const Bytes more = read_bytes(path(number));
    joined.insert(joined.end(), more.begin(), more.end());
  }
  const std::string text = error_of([&] { File::open(folder.add("joined.gguf", joined)); });
  expect_has(text, "split.count");
  expect_has(text, "'-00001-of-00003.gguf'");
  expect_has(text, "cat");
  expect_has(text, "merge them with a GGUF split tool");
}

TEST_F(SplitModel, ARenamedPartIsRefused) {
  std::filesystem::rename(path(2), folder.file("other.gguf"));
  expect_has(error_of([&] { File::open(folder.file("other.gguf")); }), "under a name that does not end in");
  std::filesystem::copy(path(3), path(2));
  const std::string text = error_of([&] { File::open(path(1)); });
  expect_has(text, "key 'split.no': found 2, expected 1");
  expect_has(text, "(part 2 of 3 of " + path(1) + ")");
  std::filesystem::copy(path(3), folder.file(name_of(1, 3, "x")));
  expect_has(error_of([&] { File::open(folder.file(name_of(1, 3, "x"))); }), "key 'split.no': found 2, expected 0");
  std::filesystem::copy(path(1), folder.file(name_of(1, 4)));
  expect_has(error_of([&] { File::open(folder.file(name_of(1, 4))); }), "key 'split.count': found 3, expected 4");
}

TEST_F(SplitModel, AMissingPartIsNamed) {
  std::filesystem::remove(path(3));
  const std::string text = error_of([&] { File::open(path(1)); }, ErrorCode::io);
  expect_has(text, path(3));
  expect_has(text, "(part 3 of 3 of " + path(1) + ")");
}

TEST_F(SplitModel, ADamagedPartIsNamed) {
  std::filesystem::resize_file(path(2), std::filesystem::file_size(path(2)) - 30);
  expect_has(error_of([&] { File::open(path(1)); }), path(2) + ": tensor 't.b' ends at");
}

TEST_F(SplitModel, APartWithoutItsNumberIsRefused) {
  folder.add(name_of(2, 3), RawFile().header(3, 0, 0));
  expect_has(error_of([&] { File::open(path(1)); }), "key 'split.no' is missing, expected 1");
}

TEST_F(SplitModel, TheNumberOfTensorsMustAgree) {
  folder.add(name_of(1, 3), part(0, 3, 5).bytes());
  expect_has(error_of([&] { File::open(path(1)); }), "key 'split.tensors.count': found 5, expected 2");
  Writer writer;
  writer.add_integer("split.no", ValueType::u16, 0);
  writer.add_integer("split.count", ValueType::u16, 3);
  folder.add(name_of(1, 3), writer.bytes());
  expect_has(error_of([&] { File::open(path(1)); }), "key 'split.tensors.count' is missing, expected 2");
}

TEST_F(SplitModel, ATensorOfTwoPartsIsRefused) {
  Writer writer;
  writer.add_integer("split.no", ValueType::u16, 2);
  writer.add_tensor("t.b", DType::f32, kShape, counting(8));
  folder.add(name_of(3, 3), writer.bytes());
  const std::string text = error_of([&] { File::open(path(1)); });
  expect_has(text, path(3) + ": tensor 't.b'");
  expect_has(text, path(2));
}

TEST_F(SplitModel, SplitKeysOfAWrongTypeAreRefused) {
  Writer writer;
  writer.add_text("split.count", "three");
  expect_has(error_of([&] { File::open(folder.add(name_of(1, 3, "y"), writer.bytes())); }),
             "key 'split.count': found string 'three', expected an integer from 0 to 65535");
  writer.add_integer("split.count", ValueType::i32, -3);
  expect_has(error_of([&] { File::open(folder.add(name_of(1, 3, "y"), writer.bytes())); }), "found i32 -3");
}

TEST_F(SplitModel, ADescriptorHoldsOnlyWholeModels) {
  const int fd = ::open(path(1).c_str(), O_RDONLY);
  expect_has(error_of([&] { File::open(fd, 0, 0, path(1)); }), "found one part of 3 of a split model");
  ::close(fd);
}

TEST(Split, ModelsOfOneFileNeedNoName) {
  const Folder folder;
  for (const int count : {0, 1}) {
    const std::string path = folder.add("any.gguf", part(0, count, 0).bytes());
    EXPECT_EQ(File::open(path).n_shards(), 1);
  }
  EXPECT_EQ(File::open(folder.add("m-00001-of-00001.gguf", part(0, 1, 0).bytes())).n_shards(), 1);
}

TEST(Split, ANameAloneMakesNoShard) {
  const Folder folder;
  const Bytes whole = small_writer().bytes();
  for (const char* name :
       {"best-of-breed.gguf", "m-00000-of-00004.gguf", "m-00005-of-00004.gguf", "m-00003-of-00003.gguf"}) {
    EXPECT_EQ(File::open(folder.add(name, whole)).n_shards(), 1) << name;
  }
}

}  // namespace
}  // namespace kz::gguf
