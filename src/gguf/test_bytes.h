// For the tests of this folder: files made field by field (so that any field can be wrong), and a folder for files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <kazeia/error.h>

#include "gguf/file.h"
#include "gguf/writer.h"

namespace kz::gguf {

using Bytes = std::vector<std::byte>;

/// Appends fields without any check.
class RawFile {
 public:
  RawFile& text(std::string_view value) { return number<uint64_t>(value.size()).raw(value); }
  RawFile& raw(std::string_view value) {
    bytes_.append(value);
    return *this;
  }
  template <class T>
  RawFile& number(T value) {
    return raw({reinterpret_cast<const char*>(&value), sizeof(T)});
  }
  RawFile& header(uint32_t version, int64_t tensors, int64_t keys) {
    return raw("GGUF").number(version).number(tensors).number(keys);
  }
  RawFile& key(std::string_view name, ValueType type) { return text(name).number(type); }
  RawFile& array(std::string_view name, int32_t element, uint64_t count) {
    return key(name, ValueType::array).number(element).number(count);
  }
  RawFile& u32(std::string_view name, uint32_t value) { return key(name, ValueType::u32).number(value); }
  RawFile& tensor(std::string_view name, const std::vector<int64_t>& ne, int32_t type, uint64_t offset) {
    text(name).number(static_cast<uint32_t>(ne.size()));
    for (const int64_t n : ne) number(n);
    return number(type).number(offset);
  }
  RawFile& zeros(size_t count) {
    bytes_.append(count, '\0');
    return *this;
  }
  RawFile& pad(size_t alignment = 32) { return zeros((alignment - bytes_.size() % alignment) % alignment); }
  operator Bytes() const {
    const auto* at = reinterpret_cast<const std::byte*>(bytes_.data());
    return {at, at + bytes_.size()};
  }

 private:
  std::string bytes_;
};

/// What the error says; fails the test when there is none, or when it is not one clean line.
template <class Action>
std::string error_of(Action&& action, ErrorCode code = ErrorCode::bad_file) {
  try {
    action();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.code(), code) << text;
    for (const char c : text) {
      EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7f) << "a control character in: " << text;
    }
    return text;
  }
  ADD_FAILURE() << "no error";
  return "";
}

/// The same for the error of opening these bytes as the file "m.gguf".
inline std::string open_error(const Bytes& bytes, ErrorCode code = ErrorCode::bad_file) {
  const std::string text = error_of([&] { File::view(bytes, "m.gguf"); }, code);
  EXPECT_TRUE(text.starts_with("m.gguf: ")) << text;
  return text;
}

inline void expect_has(const std::string& text, std::string_view part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

/// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    std::string pattern = testing::TempDir() + "/kz_gguf_XXXXXX";
    const char* made = mkdtemp(pattern.data());
    if (made == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = made;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string add(const std::string& name, const Bytes& bytes) const {
    std::ofstream(file(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

inline Bytes read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto* at = reinterpret_cast<const std::byte*>(text.data());
  return {at, at + text.size()};
}

/// Bytes 0, 1, 2, ... as a tensor's data.
inline Writer::Fill counting(size_t size_bytes) {
  return [size_bytes](const auto& put) {
    Bytes data(size_bytes);
    for (size_t i = 0; i < size_bytes; ++i) data[i] = static_cast<std::byte>(i);
    put(data);
  };
}

/// A small good file: every kind of value and three tensors of three types.
inline Writer small_writer(int version = 3, uint64_t alignment = 32) {
  Writer writer(version, alignment);
  writer.add_text("general.architecture", "llama");
  writer.add_integer("n.u8", ValueType::u8, 200);
  writer.add_integer("n.i64", ValueType::i64, -5);
  writer.add_f32("eps", 1e-5f);
  writer.add_bool("flag", true);
  const std::array<int64_t, 3> ids{1, -2, 3};
  writer.add_integers("ids", ValueType::i32, ids);
  const std::array<float, 2> scores{0.5f, -1.0f};
  writer.add_floats("scores", scores);
  const std::array<std::string_view, 3> tokens{"a", "", "bcd"};
  writer.add_texts("tokens", tokens);
  const std::array<int64_t, 2> matrix{32, 2};
  const std::array<int64_t, 1> vector{3};
  writer.add_tensor("w.q4_0", DType::q4_0, matrix, counting(36));
  writer.add_tensor("b.f32", DType::f32, vector, counting(12));
  writer.add_tensor("h.f16", DType::f16, vector, counting(6));
  return writer;
}

}  // namespace kz::gguf
