#include "gguf/values.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "gguf/cursor.h"
#include "gguf/directory.h"
#include "gguf/printable.h"

namespace kz::gguf {
namespace {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

/// The integer at an address; nothing for another type and for a u64 above 2^63 - 1. A bool is 0 or 1.
std::optional<int64_t> as_integer(ValueType type, const std::byte* at) {
  switch (type) {
    case ValueType::u8:
      return load<uint8_t>(at);
    case ValueType::i8:
      return load<int8_t>(at);
    case ValueType::u16:
      return load<uint16_t>(at);
    case ValueType::i16:
      return load<int16_t>(at);
    case ValueType::u32:
      return load<uint32_t>(at);
    case ValueType::i32:
      return load<int32_t>(at);
    case ValueType::i64:
      return load<int64_t>(at);
    case ValueType::boolean:
      return load<uint8_t>(at) != 0 ? 1 : 0;
    case ValueType::u64: {
      const auto value = load<uint64_t>(at);
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

/// The number at an address; nothing for another type and for an integer that a double cannot hold exactly.
std::optional<double> as_number(ValueType type, const std::byte* at) {
  if (type == ValueType::f32) return load<float>(at);
  if (type == ValueType::f64) return load<double>(at);
  if (type == ValueType::boolean) return std::nullopt;
  const auto integer = as_integer(type, at);
  constexpr int64_t kExact = int64_t{1} << 53;
  if (!integer || *integer > kExact || *integer < -kExact) return std::nullopt;
  return static_cast<double>(*integer);
}

/// The text whose length stands at an address.
std::string_view text_at(const std::byte* at) {
  const auto length = load<uint64_t>(at);
  return {reinterpret_cast<const char*>(at + sizeof(length)), static_cast<size_t>(length)};
}

std::string show_scalar(ValueType type, const std::byte* at) {
  if (type == ValueType::string) return fmt::format("string '{}'", printable(text_at(at)));
  if (type == ValueType::boolean) return fmt::format("bool {}", load<uint8_t>(at));
  if (type == ValueType::u64) return fmt::format("u64 {}", load<uint64_t>(at));
  if (type == ValueType::f32) return fmt::format("f32 {}", load<float>(at));
  if (type == ValueType::f64) return fmt::format("f64 {}", load<double>(at));
  return fmt::format("{} {}", value_type_name(type), as_integer(type, at).value_or(0));
}

std::string expected_integer(int64_t lo, int64_t hi) {
  using Limits = std::numeric_limits<int64_t>;
  if (lo == Limits::min() && hi == Limits::max()) return "an integer";
  if (hi == Limits::max()) return fmt::format("an integer, at least {}", lo);
  return fmt::format("an integer from {} to {}", lo, hi);
}

}  // namespace

std::string describe(const KeyValue& kv) {
  if (kv.type != ValueType::array) return show_scalar(kv.type, kv.bytes.data());
  return fmt::format("an array of {} {}", kv.count, value_type_name(kv.element));
}

void Value::fail_value(const std::string& found, const std::string& expected) const {
  fail(ErrorCode::bad_file, file_, fmt::format("key '{}': found {}, expected {}", printable(kv_.key), found, expected));
}

int64_t Value::integer(int64_t lo, int64_t hi) const {
  const auto value = as_integer(kv_.type, kv_.bytes.data());
  if (!value || *value < lo || *value > hi) fail_value(describe(kv_), expected_integer(lo, hi));
  return *value;
}

double Value::number() const {
  const auto value = as_number(kv_.type, kv_.bytes.data());
  if (!value || !std::isfinite(*value)) fail_value(describe(kv_), "a finite number");
  return *value;
}

bool Value::boolean() const {
  const auto value = as_integer(kv_.type, kv_.bytes.data());
  if (!value) fail_value(describe(kv_), "a bool");
  return *value != 0;
}

std::string_view Value::text() const {
  if (kv_.type != ValueType::string) fail_value(describe(kv_), "a string");
  return text_at(kv_.bytes.data());
}

std::vector<int64_t> Value::integers() const {
  const uint64_t step = scalar_bytes(kv_.element);
  if (step == 0 || kv_.element == ValueType::f32 || kv_.element == ValueType::f64) {
    fail_value(describe(kv_), "integers");
  }
  std::vector<int64_t> values;
  values.reserve(kv_.count);
  for (uint64_t i = 0; i < kv_.count; ++i) {
    const std::byte* at = kv_.bytes.data() + i * step;
    const auto value = as_integer(kv_.element, at);
    if (!value) fail_value(fmt::format("{} as element {}", show_scalar(kv_.element, at), i), "integers below 2^63");
    values.push_back(*value);
  }
  return values;
}

std::vector<float> Value::floats() const {
  const uint64_t step = scalar_bytes(kv_.element);
  if (step == 0 || kv_.element == ValueType::boolean) fail_value(describe(kv_), "numbers");
  std::vector<float> values;
  values.reserve(kv_.count);
  for (uint64_t i = 0; i < kv_.count; ++i) {
    const std::byte* at = kv_.bytes.data() + i * step;
    const auto value = as_number(kv_.element, at);
    const bool fits = value && (std::isinf(*value) || std::fabs(*value) <= std::numeric_limits<float>::max());
    if (!fits) {
      fail_value(fmt::format("{} as element {}", show_scalar(kv_.element, at), i), "numbers in the range of a float");
    }
    values.push_back(static_cast<float>(*value));
  }
  return values;
}

std::vector<std::string_view> Value::texts() const {
  if (kv_.element != ValueType::string) fail_value(describe(kv_), "strings");
  std::vector<std::string_view> values;
  values.reserve(kv_.count);
  const std::byte* at = kv_.bytes.data();
  for (uint64_t i = 0; i < kv_.count; ++i) {
    values.push_back(text_at(at));
    at += sizeof(uint64_t) + values.back().size();
  }
  return values;
}

}  // namespace kz::gguf
