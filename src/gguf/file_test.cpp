// Opening good files: what is read, how values are looked up, and what opening does not touch.
#include "gguf/file.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "gguf/printable.h"
#include "gguf/test_bytes.h"

namespace kz::gguf {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

void expect_small(const File& file) {
  EXPECT_EQ(file.text("general.architecture"), "llama");
  ASSERT_EQ(file.tensors().size(), 3u);
  for (const TensorInfo& info : file.tensors()) {
    EXPECT_EQ(file.find_tensor(info.name), &info);
    const Tensor tensor = file.data(info);
    for (size_t i = 0; i < info.size_bytes; ++i) ASSERT_EQ(tensor.data[i], static_cast<std::byte>(i)) << info.name;
  }
}

TEST(File, ReadsKeysAndTensors) {
  const Bytes bytes = small_writer().bytes();
  const File file = File::view(bytes, "m.gguf");
  EXPECT_EQ(file.name(), "m.gguf");
  EXPECT_EQ(file.version(), 3);
  EXPECT_EQ(file.alignment(), 32u);
  EXPECT_EQ(file.size_bytes(), bytes.size());
  EXPECT_EQ(file.n_shards(), 1);
  ASSERT_EQ(file.keys().size(), 8u);
  EXPECT_EQ(file.keys()[1].key, "n.u8");
  EXPECT_EQ(file.keys()[7].count, 3u);
  EXPECT_EQ(file.find("absent"), nullptr);
  EXPECT_EQ(file.find_tensor("absent"), nullptr);
  expect_small(file);

  const TensorInfo& matrix = *file.find_tensor("w.q4_0");
  EXPECT_EQ(matrix.dtype, DType::q4_0);
  EXPECT_EQ(matrix.n_dims, 2);
  EXPECT_EQ(matrix.size_bytes, 36u);
  const Tensor tensor = file.data(matrix);
  EXPECT_EQ(tensor.ne, (std::array<int64_t, 4>{32, 2, 1, 1}));
  EXPECT_EQ(tensor.stride, (std::array<int64_t, 4>{18, 18, 36, 36}));
}

TEST(File, StaysValidWhenMoved) {
  const Bytes bytes = small_writer().bytes();
  File first = File::view(bytes, "m.gguf");
  const TensorInfo* info = first.find_tensor("b.f32");
  File second = std::move(first);
  EXPECT_EQ(second.find_tensor("b.f32"), info);
  expect_small(second);
}

TEST(File, AcceptsVersions2And3AndEveryAlignment) {
  for (const int version : {2, 3}) {
    for (const uint64_t alignment : {1u, 8u, 32u, 64u, 4096u, 1u << 20}) {
      const Bytes bytes = small_writer(version, alignment).bytes();
      const File file = File::view(bytes, "m.gguf");
      EXPECT_EQ(file.version(), version);
      EXPECT_EQ(file.alignment(), alignment);
      expect_small(file);
    }
  }
}

TEST(File, AcceptsAFileWithoutTensorsAndOneWithoutAnything) {
  const Bytes nothing = RawFile().header(3, 0, 0);
  EXPECT_TRUE(File::view(nothing, "m.gguf").tensors().empty());
  Writer writer;
  writer.add_text("k", "v");
  writer.add_texts("none", {});
  writer.add_integers("no.ids", ValueType::u64, {});
  writer.set_pad_end(false);
  const Bytes bytes = writer.bytes();
  const File file = File::view(bytes, "m.gguf");
  EXPECT_EQ(file.text("k"), "v");
  EXPECT_TRUE(file.texts("none").empty());
  EXPECT_TRUE(file.integers("no.ids").empty());
  EXPECT_FALSE(file.padded_end());
}

TEST(File, AcceptsATensorOfNoDimensionsAndOfNoElements) {
  // Zero elements: field case of a division by the zero dimension.
  const Bytes bytes = RawFile()
                          .header(3, 5, 0)
                          .tensor("scalar", {}, 0, 0)
                          .tensor("second zero", {8, 0}, 0, 32)
                          .tensor("first zero", {0, 8}, 2, 32)
                          .tensor("all zero", {0, 0, 0, 0}, 0, 0)
                          .tensor("zero in a huge shape", {1 << 30, 0, 1 << 28}, 0, 32)
                          .pad()
                          .zeros(32);
  const File file = File::view(bytes, "m.gguf");
  EXPECT_EQ(file.tensors()[0].size_bytes, 4u);
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(file.tensors()[i].size_bytes, 0u);
    EXPECT_EQ(file.data(file.tensors()[i]).elements(), 0);
  }
}

TEST(File, AcceptsGapsAndAnyOrderOfTensors) {
  const Bytes bytes = RawFile()
                          .header(3, 2, 0)
                          .tensor("later", {2}, 0, 96)
                          .tensor("earlier", {2}, 0, 32)
                          .pad()
                          .zeros(32)
                          .number(1.0f)
                          .number(2.0f)
                          .zeros(56)
                          .number(3.0f)
                          .number(4.0f);
  const File file = File::view(bytes, "m.gguf");
  EXPECT_EQ(*file.data(*file.find_tensor("earlier")).f32(), 1.0f);
  EXPECT_EQ(*file.data(*file.find_tensor("later")).f32(), 3.0f);
  EXPECT_FALSE(file.padded_end());
}

TEST(File, KnowsEveryTypeId) {
  constexpr std::array<int32_t, 35> kIds{0,  1,  2,  3,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
                                         20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 34, 35, 39, 40, 41, 42};
  for (const int32_t id : kIds) {
    const DTypeInfo& type = *find_dtype(id);
    const Bytes bytes = RawFile().header(3, 1, 0).tensor("t", {256, 3}, id, 0).pad().zeros(256 * 8 * 3);
    const File file = File::view(bytes, "m.gguf");
    EXPECT_EQ(file.tensors()[0].dtype, type.dtype);
    EXPECT_EQ(file.tensors()[0].size_bytes, static_cast<uint64_t>(256 / type.block_elements * type.block_bytes * 3));
  }
}

// --- look-ups ---

TEST(Lookup, IntegersOfEveryWidth) {
  Writer writer;
  for (const auto type : {ValueType::u8, ValueType::i8, ValueType::u16, ValueType::i16, ValueType::u32, ValueType::i32,
                          ValueType::u64, ValueType::i64}) {
    writer.add_integer(value_type_name(type), type, 100);
  }
  writer.add_integer("minus", ValueType::i8, -1);
  writer.add_integer("low", ValueType::i64, kLowest);
  writer.add_integer("bool", ValueType::boolean, 255);
  const Bytes bytes = writer.bytes();
  const File file = File::view(bytes, "m.gguf");
  for (const KeyValue& kv : file.keys().first(8)) {
    EXPECT_EQ(file.integer(kv.key, 100, 100), 100);
    EXPECT_EQ(file.number(kv.key), 100.0);
    EXPECT_EQ(file.integers(kv.key), std::vector<int64_t>{100});
    EXPECT_EQ(file.floats(kv.key), std::vector<float>{100.0f});
    EXPECT_TRUE(file.boolean_or(kv.key, false));
    expect_has(error_of([&] { file.integer(kv.key, 1, 99); }), "an integer from 1 to 99");
    expect_has(error_of([&] { file.integer(kv.key, 101, kHighest); }), "an integer, at least 101");
    expect_has(error_of([&] { file.text(kv.key); }), "expected a string");
    expect_has(error_of([&] { file.texts(kv.key); }), "expected strings");
  }
  EXPECT_EQ(file.integer("minus", -1, 0), -1);
  EXPECT_EQ(file.integer("low", kLowest, kHighest), kLowest);
  EXPECT_EQ(file.integer("bool", 0, 1), 1);
  expect_has(error_of([&] { file.number("low"); }), "i64 -9223372036854775808, expected a finite number");
  expect_has(error_of([&] { file.number("bool"); }), "found bool 255");
  expect_has(error_of([&] { file.floats("bool"); }), "found bool 255, expected numbers");
}

TEST(Lookup, AnUnsignedNumberAbove2To63IsOutOfRange) {
  const Bytes bytes = RawFile()
                          .header(3, 0, 2)
                          .key("big", ValueType::u64)
                          .number(uint64_t{1} << 63)
                          .array("bigs", 10, 2)
                          .number(uint64_t{7})
                          .number(std::numeric_limits<uint64_t>::max());
  const File file = File::view(bytes, "m.gguf");
  EXPECT_EQ(error_of([&] { file.integer("big", kLowest, kHighest); }),
            "m.gguf: key 'big': found u64 9223372036854775808, expected an integer");
  expect_has(error_of([&] { file.integers("bigs"); }), "found u64 18446744073709551615 as element 1");
  expect_has(error_of([&] { file.boolean_or("big", true); }), "expected a bool");
}

TEST(Lookup, NumbersAreFinite) {
  const Bytes bytes = RawFile()
                          .header(3, 0, 5)
                          .key("f64", ValueType::f64)
                          .number(0.1)
                          .key("nan", ValueType::f32)
                          .number(std::nanf(""))
                          .key("inf", ValueType::f64)
                          .number(HUGE_VAL)
                          .key("big", ValueType::f64)
                          .number(1e300)
                          .key("half", ValueType::f32)
                          .number(0.5f);
  const File file = File::view(bytes, "m.gguf");
  EXPECT_EQ(file.number("f64"), 0.1);
  EXPECT_EQ(file.number_or("half", 9), 0.5);
  EXPECT_EQ(file.number_or("absent", 9), 9.0);
  expect_has(error_of([&] { file.number("nan"); }), "key 'nan': found f32 nan, expected a finite number");
  expect_has(error_of([&] { file.number_or("inf", 1); }), "found f64 inf");
  expect_has(error_of([&] { file.integer("half", 0, 9); }), "found f32 0.5, expected an integer from 0 to 9");
  expect_has(error_of([&] { file.integers("half"); }), "found f32 0.5, expected integers");
  EXPECT_EQ(file.floats("f64"), std::vector<float>{0.1f});
  expect_has(error_of([&] { file.floats("nan"); }), "f32 nan as element 0");
  expect_has(error_of([&] { file.floats("big"); }), "in the range of a float");
}

TEST(Lookup, BooleanArraysCountAsIntegersAndNonZeroIsTrue) {
  RawFile raw;
  raw.header(3, 0, 4).array("flags", 7, 4).raw(std::string_view("\x00\x01\x02\xff", 4));
  raw.key("two", ValueType::boolean).raw("\x02");
  raw.key("zero", ValueType::boolean).number(uint8_t{0});
  raw.key("one", ValueType::i8).number(int8_t{-1});
  const Bytes bytes = raw;
  const File file = File::view(bytes, "m.gguf");
  EXPECT_EQ(file.integers("flags"), (std::vector<int64_t>{0, 1, 1, 1}));
  EXPECT_TRUE(file.boolean_or("two", false));
  EXPECT_FALSE(file.boolean_or("zero", true));
  EXPECT_TRUE(file.boolean_or("one", false));
  EXPECT_TRUE(file.boolean_or("absent", true));
  EXPECT_EQ(file.integer("two", 0, 1), 1);
  expect_has(error_of([&] { file.floats("flags"); }), "found an array of 4 bool, expected numbers");
  expect_has(error_of([&] { file.boolean_or("flags", true); }), "found an array of 4 bool, expected a bool");
}

TEST(Lookup, ArraysAndScalars) {
  const Bytes bytes = small_writer().bytes();
  const File file = File::view(bytes, "m.gguf");
  EXPECT_EQ(file.integers("ids"), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(file.floats("ids"), (std::vector<float>{1, -2, 3}));
  EXPECT_EQ(file.floats("scores"), (std::vector<float>{0.5f, -1.0f}));
  EXPECT_EQ(file.texts("tokens"), (std::vector<std::string_view>{"a", "", "bcd"}));
  EXPECT_EQ(file.texts("general.architecture"), std::vector<std::string_view>{"llama"});
  expect_has(error_of([&] { file.integers("scores"); }), "found an array of 2 f32, expected integers");
  expect_has(error_of([&] { file.integers("tokens"); }), "found an array of 3 string, expected integers");
  expect_has(error_of([&] { file.integer("ids", 0, 1); }), "found an array of 3 i32");
  expect_has(error_of([&] { file.text("tokens"); }), "found an array of 3 string, expected a string");
  expect_has(error_of([&] { file.number("general.architecture"); }), "found string 'llama', expected a finite number");
}

TEST(Lookup, AbsentKeys) {
  const Bytes bytes = RawFile().header(3, 0, 0);
  const File file = File::view(bytes, "m.gguf");
  EXPECT_EQ(file.integer_or("k", -7, 0, 5), -7);
  EXPECT_EQ(file.text_or("k", "none"), "none");
  EXPECT_EQ(error_of([&] { file.integer("k", 0, 5); }), "m.gguf: key 'k' is missing, expected an integer");
  expect_has(error_of([&] { file.number("k"); }), "expected a number");
  expect_has(error_of([&] { file.text("k"); }), "expected a string");
  expect_has(error_of([&] { file.integers("k"); }), "expected an array of integers");
  expect_has(error_of([&] { file.floats("k"); }), "expected an array of numbers");
  expect_has(error_of([&] { file.texts("k"); }), "expected an array of strings");
}

TEST(Printable, EscapesAndShortens) {
  EXPECT_EQ(printable(std::string_view("a\0\x1b[2J\n\x7f\xe9'\\", 11)), "a\\x00\\x1b[2J\\x0a\\x7f\\xe9\\'\\\\");
  EXPECT_EQ(printable(std::string(200, 'x')), std::string(64, 'x') + "...");
  EXPECT_EQ(printable(std::string(64, 'x')), std::string(64, 'x'));
  EXPECT_EQ(printable_path("\xc3\xa9 '\\\n"), "\xc3\xa9 '\\\\x0a");
}

TEST(Printable, RecognisesUtf8) {
  for (const char* good : {"", "abc", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a\xe3\x83\xa2z"}) {
    EXPECT_TRUE(is_utf8(good)) << printable(good);
  }
  for (const char* bad : {"\x80", "\xc1\xbf", "\xc2", "\xc2z", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe3\x83", "\xe3\x83z",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xf0\x90\x80"}) {
    EXPECT_FALSE(is_utf8(bad)) << printable(bad);
  }
}

// --- files and descriptors ---

TEST(Open, APathOfAnyCharacters) {
  const Folder folder;
  std::filesystem::create_directory(folder.file("\xe3\x83\xa2\xe3\x83\x87\xe3\x83\xab \xc3\xa9 \xf0\x9f\xa6\x99"));
  const std::string name = "\xe3\x83\xa2\xe3\x83\x87\xe3\x83\xab \xc3\xa9 \xf0\x9f\xa6\x99/qwen 3.gguf";
  const std::string path = folder.add(name, small_writer().bytes());
  const File file = File::open(path);
  EXPECT_EQ(file.name(), path);
  expect_small(file);
  expect_has(error_of([&] { file.text("absent"); }), path);
  const std::string missing = folder.file("\xe3\x83\xab.gguf");
  expect_has(error_of([&] { File::open(missing); }, ErrorCode::io), missing);
}

TEST(Open, ADescriptorAtAnOffsetInsideAContainer) {
  const Folder folder;
  const Bytes model = small_writer().bytes();
  for (const size_t offset : {size_t{0}, size_t{1}, size_t{4096}, size_t{16384}, size_t{20001}}) {
    const std::string path = folder.add("archive", RawFile().zeros(offset));
    std::ofstream out(path, std::ios::binary | std::ios::app);
    out.write(reinterpret_cast<const char*>(model.data()), static_cast<std::streamsize>(model.size()));
    out << std::string(5000, 'z');  // whatever follows in the archive
    out.close();
    const int fd = ::open(path.c_str(), O_RDONLY);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(::unlink(path.c_str()), 0);  // a descriptor is enough, the path may be gone
    {
      const File file = File::open(fd, offset, model.size(), "archive!m.gguf");
      EXPECT_EQ(file.name(), "archive!m.gguf");
      EXPECT_EQ(file.size_bytes(), model.size());
      expect_small(file);
      for (const TensorInfo& info : file.tensors()) {
        file.will_need(info);
        file.not_needed(info);
      }
      expect_small(file);
    }
    EXPECT_NE(::fcntl(fd, F_GETFD), -1) << "the descriptor was closed";
    expect_has(error_of([&] { File::open(fd, offset, model.size() - 40, "short"); }), "short: tensor 'h.f16' ends at");
    EXPECT_NE(::fcntl(fd, F_GETFD), -1) << "the descriptor was closed by a failed open";
    ::close(fd);
  }
}

TEST(Open, ADescriptorToTheEndOfItsFile) {
  const Folder folder;
  const Bytes model = small_writer().bytes();
  const std::string path = folder.add("m", model);
  const int fd = ::open(path.c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  const File file = File::open(fd, 0, 0, "m");
  ::close(fd);  // the mapping does not need it
  EXPECT_EQ(file.size_bytes(), model.size());
  expect_small(file);
}

/// Pages of [from, to) of a file that are in memory.
size_t resident_pages(const std::string& path, uint64_t from, uint64_t to) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  from -= from % page;
  const int fd = ::open(path.c_str(), O_RDONLY);
  void* map = mmap(nullptr, to - from, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(from));
  ::close(fd);
  if (map == MAP_FAILED) throw std::runtime_error("mmap failed");
  std::vector<unsigned char> pages((to - from + page - 1) / page);
  const int status = mincore(map, to - from, pages.data());
  munmap(map, to - from);
  if (status != 0) throw std::runtime_error("mincore failed");
  size_t count = 0;
  for (const unsigned char p : pages) count += p & 1u;
  return count;
}

TEST(Open, DoesNotTouchTheTensors) {
  const Folder folder;
  constexpr uint64_t kMiB = 1 << 20;
  constexpr uint64_t kBytes = 3072 * kMiB;
  RawFile raw;
  raw.header(3, 3, 0);
  for (int i = 0; i < 3; ++i) {
    raw.tensor(std::string(1, 't') + std::to_string(i), {1 << 18, 1024}, 0, static_cast<uint64_t>(i) * 1024 * kMiB);
  }
  const Bytes head = raw.pad();
  const std::string path = folder.add("sparse.gguf", head);
  ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(head.size() + kBytes)), 0);

  const File file = File::open(path);
  EXPECT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.data(file.tensors()[2]).ne[1], 1024);
  // The system may read ahead of the header; far from it, nothing may be in memory.
  EXPECT_EQ(resident_pages(path, 64 * kMiB, kBytes), 0u);
  EXPECT_EQ(*file.data(file.tensors()[1]).f32(), 0.0f);  // and now one page is
  EXPECT_GT(resident_pages(path, 1024 * kMiB, 1056 * kMiB), 0u);
}

TEST(Open, AVocabularyOf250kTokens) {
  Writer writer;
  std::vector<std::string> texts(250000);
  for (size_t i = 0; i < texts.size(); ++i) texts[i] = std::string("token").append(std::to_string(i));
  const std::vector<std::string_view> tokens(texts.begin(), texts.end());
  writer.add_texts("tokenizer.ggml.tokens", tokens);
  writer.add_floats("tokenizer.ggml.scores", std::vector<float>(texts.size(), 0.25f));
  const Bytes bytes = writer.bytes();
  const File file = File::view(bytes, "m.gguf");
  EXPECT_EQ(file.texts("tokenizer.ggml.tokens"), tokens);
  EXPECT_EQ(file.floats("tokenizer.ggml.scores").size(), texts.size());
  // The texts are views of the file, not copies.
  const auto* first = reinterpret_cast<const std::byte*>(file.texts("tokenizer.ggml.tokens")[0].data());
  EXPECT_TRUE(first >= bytes.data() && first < bytes.data() + bytes.size());
}

}  // namespace
}  // namespace kz::gguf
