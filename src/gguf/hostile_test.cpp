// Files that break the format: each is refused with one line that names file, place, found and expected.
#include <array>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "gguf/directory.h"
#include "gguf/test_bytes.h"

namespace kz::gguf {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
constexpr uint64_t kHugeCount = std::numeric_limits<uint64_t>::max();

struct Case {
  const char* what;
  Bytes bytes;
  std::string expected;  // part of the message
  ErrorCode code = ErrorCode::bad_file;
};

void expect_refused(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    expect_has(open_error(c.bytes, c.code), c.expected);
  }
}

RawFile one_key() { return RawFile().header(3, 0, 1); }
RawFile one_tensor() { return RawFile().header(3, 1, 0); }

TEST(Hostile, NoModelAtAll) {
  expect_refused({
      {"empty", {}, "not a GGUF file: found '' as the first bytes, expected 'GGUF'"},
      {"three bytes", RawFile().raw("GGU"), "found 'GGU'"},
      {"escape sequence", RawFile().raw(std::string_view("\0\x1b[A and more", 13)), "found '\\x00\\x1b[A' as"},
      {"page", RawFile().raw("<!DOCTYPE html>"), "this looks like an HTML page, not a model"},
      {"page", RawFile().raw("<html>"), "this looks like an HTML page, not a model"},
      {"lower case", RawFile().raw("gguf").zeros(40), "found 'gguf'"},
      {"pointer", RawFile().raw("version https://git-lfs.github.com/spec/v1\n"), "looks like a Git LFS pointer"},
      {"archive", RawFile().raw("PK\x03\x04 zip"), "looks like a ZIP archive"},
      {"older format", RawFile().raw("tjgg").zeros(40), "the format that came before GGUF"},
  });
}

TEST(Hostile, Versions) {
  for (const uint32_t version : {0u, 1u, 4u, 0x7fffffffu, 0xffffffffu}) {
    EXPECT_EQ(open_error(RawFile().header(version, 0, 0), ErrorCode::unsupported),
              "m.gguf: unsupported GGUF version " + std::to_string(version) + ", expected 2 or 3");
  }
  for (const uint32_t version : {0x03000000u, 0x02000000u, 0x00010000u}) {
    expect_has(open_error(RawFile().header(version, 0, 0), ErrorCode::unsupported), "found a big-endian GGUF file");
  }
}

TEST(Hostile, Counts) {
  expect_refused({
      {"negative tensors", RawFile().header(3, -1, 0).zeros(99), "header: found -1 as the number of tensors"},
      {"negative keys", RawFile().header(3, 0, -2).zeros(99), "header: found -2 as the number of keys"},
      {"many tensors", RawFile().header(3, kHuge, 0).zeros(100), "expected at most 4 in the 100 bytes that are left"},
      {"many keys", RawFile().header(3, 0, kHuge).zeros(100), "expected at most 7 in the 100 bytes that are left"},
      {"one tensor too many", RawFile().header(3, 5, 0).zeros(100), "found 5 as the number of tensors"},
      {"a key that is not there", RawFile().header(3, 0, 2).u32("a", 1).zeros(9), "key 1: found an empty name"},
  });
}

TEST(Hostile, KeysAndTypes) {
  expect_refused({
      {"empty key", RawFile().header(3, 0, 2).u32("a", 1).u32("", 1), "key 1: found an empty name"},
      {"duplicate", RawFile().header(3, 0, 3).u32("a", 1).u32("b", 1).u32("a", 2),
       "key 2 'a': found a key that key 0 has, expected each once"},
      {"zero byte", one_key().u32(std::string_view("a\0b", 3), 1), "key 0: found a zero byte in the name 'a\\x00b'"},
      {"no UTF-8", one_key().u32("a\xff", 1), "key 0: found the name 'a\\xff', expected valid UTF-8"},
      {"key of 65536 bytes", one_key().u32(std::string(65536, 'k'), 1), "found a name of 65536 bytes 'kkk"},
      {"length beyond the file", one_key().number(uint64_t{100}).raw("abc").zeros(10),
       "key 0: the key: found a text of 100 bytes, expected at most 13"},
      {"greatest length", one_key().number(kHugeCount).zeros(20), "found a text of 18446744073709551615 bytes"},
      {"type 13", one_key().text("k").number(13).zeros(20), "key 0 'k': found 13 as the type of the value"},
      {"type -1", one_key().text("k").number(-1).zeros(20), "found -1 as the type of the value"},
      {"text beyond the file", one_key().key("k", ValueType::string).number(uint64_t{9}).raw("12345678"),
       "key 0 'k': the value: found a text of 9 bytes, expected at most 8"},
      {"no value", one_key().key("key", ValueType::u64).raw("1234567"),
       "key 0 'key': the file ends inside the value: found 7 bytes, expected 8"},
  });
}

TEST(Hostile, Arrays) {
  const auto array = [](int32_t element, uint64_t count) { return one_key().array("k", element, count); };
  expect_refused({
      {"of arrays", array(9, 1).zeros(64), "key 0 'k': found an array of arrays"},
      {"of an unknown type", array(13, 1).zeros(64), "found 13 as the type of the array's elements"},
      {"of a negative type", array(-5, 0).zeros(64), "found -5 as the type of the array's elements"},
      {"longer than the file", array(4, 17).zeros(64),
       "key 0 'k': found an array of 17 elements of type u32, expected at most 16"},
      {"size wraps to 0", array(10, uint64_t{1} << 61).zeros(64), "expected at most 8"},
      {"size wraps to 8", array(10, (uint64_t{1} << 61) + 1).zeros(64), "expected at most 8"},
      {"greatest count", array(0, kHugeCount).zeros(64), "found an array of 18446744073709551615 elements of type u8"},
      {"texts without room", array(8, 9).zeros(64), "found an array of 9 elements of type string, expected at most 8"},
      {"a text beyond the file", array(8, 2).text("ok").number(kHugeCount).zeros(8), "a text of the array: found"},
      {"texts that eat the next", array(8, 3).text("").number(uint64_t{9}).raw("12345678 "), "the file ends inside"},
  });
}

TEST(Hostile, Alignment) {
  const auto keyed = [](ValueType type) { return one_key().key("general.alignment", type); };
  expect_refused({
      {"i32", keyed(ValueType::i32).number(32), "key 'general.alignment': found type i32, expected type u32"},
      {"u64", keyed(ValueType::u64).number(uint64_t{32}), "found type u64, expected type u32"},
      {"text", keyed(ValueType::string).text("32"), "found type string, expected type u32"},
      {"array", one_key().array("general.alignment", 4, 1).number(32u), "found type array, expected type u32"},
      {"0", keyed(ValueType::u32).number(0u), "found 0, expected a power of two up to 1048576"},
      {"no power of two", keyed(ValueType::u32).number(48u), "found 48, expected a power of two"},
      {"2 MiB", keyed(ValueType::u32).number(1u << 21), "found 2097152, expected a power of two"},
      {"2^31", keyed(ValueType::u32).number(1u << 31), "found 2147483648, expected a power of two"},
  });
}

TEST(Hostile, TensorNames) {
  const std::string name_64(64, 'n');
  const auto named = [](std::string_view name) { return one_tensor().tensor(name, {1}, 0, 0).pad().zeros(32); };
  EXPECT_NO_THROW(File::view(Bytes(named(std::string(63, 'n'))), "m.gguf"));
  expect_refused({
      {"empty", named(""), "tensor 0: found an empty name"},
      {"64 bytes", named(name_64), "tensor 0: found a name of 64 bytes '" + name_64 + "', expected at most 63"},
      {"100 kB", named(std::string(100000, 'n')), "found a name of 100000 bytes '" + name_64 + "...'"},
      {"zero byte", named(std::string_view("a\0", 2)), "found a zero byte in the name 'a\\x00'"},
      {"no UTF-8", named("\xed\xa0\x80"), "found the name '\\xed\\xa0\\x80', expected valid UTF-8"},
      {"duplicate", RawFile().header(3, 2, 0).tensor("t", {1}, 0, 0).tensor("t", {1}, 0, 32).pad().zeros(64),
       "tensor 1 't': found a name that tensor 0 has, expected each once"},
  });
}

TEST(Hostile, Shapes) {
  const auto shaped = [](const std::vector<int64_t>& ne, int32_t type) {
    return one_tensor().tensor("t", ne, type, 0).pad().zeros(64);
  };
  const std::string too_large = "tensor 0 't': found a shape of 2^63 or more";
  expect_refused({
      {"5 dimensions", shaped({1, 1, 1, 1, 1}, 0), "tensor 0 't': found 5 dimensions, expected at most 4"},
      {"2^32 - 1 dimensions", one_tensor().text("t").number(0xffffffffu).zeros(64), "found 4294967295 dimensions"},
      {"negative", shaped({4, -1}, 0), "tensor 0 't': found -1 as dimension 1, expected 0 or more"},
      {"most negative", shaped({std::numeric_limits<int64_t>::min()}, 0), "as dimension 0"},
      {"elements wrap", shaped({int64_t{1} << 32, int64_t{1} << 32}, 24), too_large},
      {"elements wrap, bytes do not", shaped({int64_t{1} << 32, int64_t{1} << 31}, 2), too_large},
      {"bytes wrap, elements do not", shaped({int64_t{1} << 60, 2}, 0), too_large},
      {"bytes wrap in one row", shaped({kHuge}, 28), too_large},
      {"wraps behind a zero", shaped({0, int64_t{1} << 40, int64_t{1} << 40}, 0), too_large},
      {"wraps before a zero", shaped({int64_t{1} << 40, int64_t{1} << 40, 0}, 0), too_large},
      {"part of a block", shaped({33}, 2), "found rows of 33 elements, expected a multiple of 32 for type Q4_0"},
      {"part of a large block", shaped({32}, 12), "found rows of 32 elements, expected a multiple of 256 for"},
      {"no dimension, blocks", shaped({}, 8), "found rows of 1 elements, expected a multiple of 32 for type Q8_0"},
  });
}

TEST(Hostile, TypeIds) {
  for (const int32_t id : {4, 5, 31, 32, 33, 36, 37, 38}) {
    EXPECT_EQ(open_error(one_tensor().tensor("blk.0.w", {256}, id, 0).pad().zeros(999), ErrorCode::unsupported),
              "m.gguf: tensor 0 'blk.0.w': found type id " + std::to_string(id) +
                  ", which was removed from the format, expected a known type");
  }
  for (const int32_t id : {43, 100, -1, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()}) {
    EXPECT_EQ(open_error(one_tensor().tensor("blk.0.w", {256}, id, 0).pad().zeros(999), ErrorCode::unsupported),
              "m.gguf: tensor 0 'blk.0.w': found type id " + std::to_string(id) +
                  ", which is unknown, expected a known type");
  }
}

TEST(Hostile, Offsets) {
  const auto at = [](uint64_t offset, size_t data_bytes) {
    return one_tensor().tensor("t", {8}, 0, offset).pad().zeros(data_bytes);
  };
  EXPECT_NO_THROW(File::view(Bytes(at(0, 32)), "m.gguf"));
  EXPECT_NO_THROW(File::view(Bytes(at(64, 96)), "m.gguf"));
  const auto two = [](uint64_t first, uint64_t second) {
    return RawFile().header(3, 2, 0).tensor("a", {16}, 0, first).tensor("b", {8}, 0, second).pad().zeros(256);
  };
  expect_refused({
      {"cut by one byte", at(0, 31), "tensor 't' ends at byte 96, found a file of 95 bytes"},
      {"behind the end", at(64, 64), "tensor 't' ends at byte 160, found a file of 128 bytes"},
      {"not aligned", at(33, 96), "tensor 0 't': found offset 33, expected a multiple of the alignment 32"},
      {"start wraps", at(kHugeCount - 31, 64), "tensor 't' ends at byte 18446744073709551615"},
      {"no data at all", one_tensor().tensor("t", {8}, 0, 0), "tensor 't' ends at byte 96, found a file of 57 bytes"},
      {"the same place", two(32, 32), "tensor 'b': found offset 32, expected at least 96 where tensor 'a' ends"},
      {"overlap", two(0, 32), "tensor 'b': found offset 32, expected at least 64 where tensor 'a' ends: they overlap"},
      {"overlap in the other order", two(0, 0), "where tensor 'a' ends: they overlap"},
      {"overlap from behind", two(64, 64), "where tensor 'a' ends"},
      {"an empty tensor far away", one_tensor().tensor("e", {0}, 0, 1 << 20).pad().zeros(32), "tensor 'e' ends at"},
  });
}

TEST(Hostile, TheFirstTensorOutOfBoundsIsNamed) {
  Bytes bytes = small_writer().bytes();
  bytes.resize(bytes.size() - 32 - 28);  // the last tensor wholly, the second but for 4 bytes
  const std::string text = open_error(bytes);
  expect_has(text, "tensor 'b.f32' ends at byte");
  expect_has(text, "found a file of " + std::to_string(bytes.size()) + " bytes");
}

TEST(Hostile, SizesThatAddUpBeyond64Bits) {
  RawFile raw;
  raw.header(3, 16, 0);
  for (int i = 0; i < 16; ++i) {  // each is legal, together they need 2^64 bytes
    raw.tensor(std::string(1, 't') + std::to_string(i), {int64_t{1} << 30, int64_t{1} << 28}, 0, uint64_t{1} << 60);
  }
  expect_has(open_error(raw.pad().zeros(64)), "tensor 't0' ends at byte 2305843009213694");
  RawFile running;
  running.header(3, 16, 0);
  for (uint64_t i = 0; i < 16; ++i) {
    running.tensor(std::string(1, 't') + std::to_string(i), {int64_t{1} << 30, int64_t{1} << 28}, 0, i << 60);
  }
  expect_has(open_error(running.pad().zeros(64)), "tensor 't0' ends at byte");
}

TEST(Hostile, MessagesShowNoRawBytes) {
  const Bytes bytes = one_key().text("k\x1b[31m\n\x7f\xc2\x9b").number(99);
  expect_has(open_error(bytes), "key 0 'k\\x1b[31m\\x0a\\x7f\\xc2\\x9b': found 99 as the type");
  const std::string text = error_of([&] { File::view(bytes, "a\nb\xc3\xa9.gguf"); });
  EXPECT_TRUE(text.starts_with("a\\x0ab\xc3\xa9.gguf: ")) << text;
}

/// Reads everything that an opened file offers; the container's checks make all of it safe.
uint64_t use(const File& file) {
  uint64_t sum = 0;
  const auto attempt = [&](const std::function<void()>& look_up) {
    try {
      look_up();
    } catch (const Error&) {
      ++sum;
    }
  };
  for (const KeyValue& kv : file.keys()) {
    attempt([&] { sum += file.texts(kv.key).size(); });
    attempt([&] { sum += file.integers(kv.key).size(); });
    attempt([&] { sum += file.floats(kv.key).size(); });
    attempt([&] { sum += file.text(kv.key).size(); });
    attempt([&] { file.integer(kv.key, 0, 5); });
    attempt([&] { file.number(kv.key); });
    attempt([&] { sum += file.boolean_or(kv.key, false); });
  }
  for (const TensorInfo& info : file.tensors()) {
    const std::byte* at = file.data(info).data;
    for (size_t i = 0; i < info.size_bytes; ++i) sum += static_cast<uint8_t>(at[i]);
  }
  return sum;
}

/// Opens a copy that ends where its allocation ends, so that the sanitizer sees a read beyond it.
bool opens(const Bytes& bytes) {
  const Bytes exact(bytes);
  try {
    EXPECT_GT(use(File::view(exact, "m.gguf")) + 1, 0u);
    return true;
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
    return false;
  }
}

TEST(Hostile, CutAnywhere) {
  const Bytes whole = small_writer().bytes();
  const size_t padding = 32 - 6;  // behind the last tensor's 6 bytes, which nobody needs
  for (size_t size = 0; size < whole.size(); ++size) {
    const bool complete = size >= whole.size() - padding;
    EXPECT_EQ(opens(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))), complete) << size;
  }
}

TEST(Hostile, AnyByteChanged) {
  const Bytes whole = small_writer().bytes();
  const uint64_t header = parse(whole, "m.gguf").data_start;
  size_t opened = 0;
  for (size_t i = 0; i < header; ++i) {
    for (const int mask : {0x01, 0x02, 0x10, 0x40, 0x80, 0xff}) {
      Bytes changed = whole;
      changed[i] ^= static_cast<std::byte>(mask);
      opened += opens(changed) ? 1 : 0;
    }
    Bytes zeroed = whole;
    zeroed[i] = std::byte{0};
    opened += opens(zeroed) ? 1 : 0;
  }
  EXPECT_GT(opened, 0u);          // changed values and names
  EXPECT_LT(opened, header * 7);  // changed lengths, types, counts
}

TEST(Hostile, AnyFieldOf8BytesMadeExtreme) {
  const Bytes whole = small_writer().bytes();
  const uint64_t header = parse(whole, "m.gguf").data_start;
  constexpr std::array<uint64_t, 8> kValues{
      0, 1, kHugeCount, kHugeCount - 7, uint64_t{1} << 63, uint64_t{1} << 61, uint64_t{1} << 32, 0x7fffffffffffffff};
  size_t refused = 0;
  for (size_t i = 0; i + 8 <= header; ++i) {
    for (const uint64_t value : kValues) {
      Bytes changed = whole;
      std::memcpy(changed.data() + i, &value, sizeof(value));
      refused += opens(changed) ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace kz::gguf
