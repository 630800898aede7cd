// Reads the value of one key as the type that is wanted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"

namespace kz::gguf {

/// "u32 5", "string 'llama'", "an array of 36 i32": for messages.
std::string describe(const KeyValue& kv);

/// One value of a parsed file (its bytes are known to be complete). Each read accepts every stored type that holds
/// the value, else throws Error(bad_file) that names file, key, found and expected.
class Value {
 public:
  Value(const KeyValue& kv, const std::string& file) : kv_(kv), file_(file) {}

  int64_t integer(int64_t lo, int64_t hi) const;
  double number() const;
  bool boolean() const;
  std::string_view text() const;
  std::vector<int64_t> integers() const;
  std::vector<float> floats() const;
  std::vector<std::string_view> texts() const;

 private:
  [[noreturn]] void fail_value(const std::string& found, const std::string& expected) const;

  const KeyValue& kv_;
  const std::string& file_;
};

}  // namespace kz::gguf
