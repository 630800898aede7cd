#include "gguf/writer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/file.h"
#include "gguf/directory.h"
#include "gguf/printable.h"

namespace kz::gguf {
namespace {

using Bytes = std::vector<std::byte>;

void append_bytes(Bytes& out, const void* from, size_t size_bytes) {
  if (size_bytes == 0) return;
  const size_t at = out.size();
  out.resize(at + size_bytes);
  std::memcpy(out.data() + at, from, size_bytes);
}

template <class T>
void append(Bytes& out, T value) {
  append_bytes(out, &value, sizeof(T));
}

void append_text(Bytes& out, std::string_view text) {
  append<uint64_t>(out, text.size());
  append_bytes(out, text.data(), text.size());
}

[[noreturn]] void fail_argument(const char* kind, std::string_view name, const std::string& text) {
  throw Error(ErrorCode::bad_argument, fmt::format("{} '{}': {}", kind, printable(name), text));
}

template <class T>
void append_checked(Bytes& out, std::string_view key, ValueType type, int64_t value) {
  if (!std::in_range<T>(value)) {
    fail_argument("key", key, fmt::format("found {}, expected a value that {} holds", value, value_type_name(type)));
  }
  append(out, static_cast<T>(value));
}

void append_integer(Bytes& out, std::string_view key, ValueType type, int64_t value) {
  switch (type) {
    case ValueType::u8:
    case ValueType::boolean:
      return append_checked<uint8_t>(out, key, type, value);
    case ValueType::i8:
      return append_checked<int8_t>(out, key, type, value);
    case ValueType::u16:
      return append_checked<uint16_t>(out, key, type, value);
    case ValueType::i16:
      return append_checked<int16_t>(out, key, type, value);
    case ValueType::u32:
      return append_checked<uint32_t>(out, key, type, value);
    case ValueType::i32:
      return append_checked<int32_t>(out, key, type, value);
    case ValueType::u64:
      return append_checked<uint64_t>(out, key, type, value);
    case ValueType::i64:
      return append(out, value);
    default:
      break;
  }
  fail_argument("key", key, fmt::format("found type {}, expected a type of integers", value_type_name(type)));
}

Bytes typed(ValueType type) {
  Bytes out;
  append(out, type);
  return out;
}

Bytes typed_array(ValueType element, size_t count) {
  Bytes out = typed(ValueType::array);
  append(out, element);
  append<uint64_t>(out, count);
  return out;
}

uint64_t tensor_bytes(std::string_view name, DType dtype, std::span<const int64_t> ne) {
  const DTypeInfo& type = dtype_info(dtype);
  const int64_t cols = ne.empty() ? 1 : ne[0];
  if (ne.size() > 4 || cols < 0 || type.block_elements <= 0 || cols % type.block_elements != 0) {
    fail_argument("tensor", name,
                  fmt::format("found {} dimensions and rows of {} elements, expected at most 4 and a "
                              "multiple of {} for type {}",
                              ne.size(), cols, type.block_elements, type.name));
  }
  const auto refuse = [&] {
    fail_argument("tensor", name, "found a shape of no possible size, expected below 2^63 bytes");
  };
  int64_t bytes = cols / type.block_elements;
  const auto multiply = [&](int64_t n) {
    if (n < 0 || (n > 0 && bytes > std::numeric_limits<int64_t>::max() / n)) refuse();
    bytes *= n;
  };
  multiply(type.block_bytes);
  for (size_t i = 1; i < ne.size(); ++i) multiply(ne[i]);
  return static_cast<uint64_t>(bytes);
}

void put_zeros(const std::function<void(std::span<const std::byte>)>& sink, uint64_t count) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  while (count > 0) {
    const uint64_t piece = std::min<uint64_t>(count, kZeros.size());
    sink(std::span(kZeros).first(piece));
    count -= piece;
  }
}

}  // namespace

Writer Writer::copy_of(const File& file) {
  Writer writer(file.version(), file.alignment());
  for (const KeyValue& kv : file.keys()) {
    if (file.n_shards() > 1 && kv.key.starts_with("split.")) continue;
    writer.add_raw(kv);
  }
  for (const TensorInfo& tensor : file.tensors()) {
    const auto* data = file.data(tensor).data;
    writer.add_tensor(tensor.name, tensor.dtype, std::span(tensor.ne).first(static_cast<size_t>(tensor.n_dims)),
                      [data, size = tensor.size_bytes](const auto& put) { put({data, size}); });
  }
  writer.set_pad_end(file.padded_end());
  return writer;
}

void Writer::put_key(std::string_view key, Bytes typed_value) {
  const auto at = std::find_if(keys_.begin(), keys_.end(), [&](const Key& k) { return k.name == key; });
  if (at != keys_.end()) {
    at->typed_value = std::move(typed_value);
  } else {
    keys_.push_back({std::string(key), std::move(typed_value)});
  }
}

void Writer::add_integer(std::string_view key, ValueType type, int64_t value) {
  Bytes out = typed(type);
  append_integer(out, key, type, value);
  put_key(key, std::move(out));
}

void Writer::add_f32(std::string_view key, float value) {
  Bytes out = typed(ValueType::f32);
  append(out, value);
  put_key(key, std::move(out));
}

void Writer::add_bool(std::string_view key, bool value) { add_integer(key, ValueType::boolean, value ? 1 : 0); }

void Writer::add_text(std::string_view key, std::string_view value) {
  Bytes out = typed(ValueType::string);
  append_text(out, value);
  put_key(key, std::move(out));
}

void Writer::add_integers(std::string_view key, ValueType element, std::span<const int64_t> values) {
  Bytes out = typed_array(element, values.size());
  for (const int64_t value : values) append_integer(out, key, element, value);
  put_key(key, std::move(out));
}

void Writer::add_floats(std::string_view key, std::span<const float> values) {
  Bytes out = typed_array(ValueType::f32, values.size());
  for (const float value : values) append(out, value);
  put_key(key, std::move(out));
}

void Writer::add_texts(std::string_view key, std::span<const std::string_view> values) {
  Bytes out = typed_array(ValueType::string, values.size());
  for (const std::string_view value : values) append_text(out, value);
  put_key(key, std::move(out));
}

void Writer::add_raw(const KeyValue& kv) {
  Bytes out = kv.type == ValueType::array ? typed_array(kv.element, kv.count) : typed(kv.type);
  append_bytes(out, kv.bytes.data(), kv.bytes.size());
  put_key(kv.key, std::move(out));
}

void Writer::add_tensor(std::string_view name, DType dtype, std::span<const int64_t> ne, Fill fill) {
  const uint64_t size_bytes = tensor_bytes(name, dtype, ne);
  tensors_.push_back({std::string(name), dtype, {ne.begin(), ne.end()}, size_bytes, std::move(fill)});
}

uint64_t Writer::padded(uint64_t size_bytes) const {
  const uint64_t over = size_bytes % alignment_;
  return over == 0 ? size_bytes : size_bytes + (alignment_ - over);
}

std::vector<std::byte> Writer::header() const {
  if (!std::has_single_bit(alignment_)) {
    throw Error(ErrorCode::bad_argument, fmt::format("alignment: found {}, expected a power of two", alignment_));
  }
  constexpr std::string_view kAlignmentKey = "general.alignment";
  const bool named = std::any_of(keys_.begin(), keys_.end(), [&](const Key& k) { return k.name == kAlignmentKey; });
  const bool add_alignment = alignment_ != 32 && !named;
  Bytes out;
  append_bytes(out, "GGUF", 4);
  append(out, static_cast<uint32_t>(version_));
  append<int64_t>(out, static_cast<int64_t>(tensors_.size()));
  append<int64_t>(out, static_cast<int64_t>(keys_.size() + (add_alignment ? 1 : 0)));
  for (const Key& key : keys_) {
    append_text(out, key.name);
    append_bytes(out, key.typed_value.data(), key.typed_value.size());
  }
  if (add_alignment) {
    append_text(out, kAlignmentKey);
    append(out, ValueType::u32);
    append_integer(out, kAlignmentKey, ValueType::u32, static_cast<int64_t>(alignment_));
  }
  uint64_t offset = 0;
  for (const Entry& tensor : tensors_) {
    append_text(out, tensor.name);
    append(out, static_cast<uint32_t>(tensor.ne.size()));
    for (const int64_t n : tensor.ne) append(out, n);
    append(out, tensor.dtype);
    append(out, offset);
    offset += padded(tensor.size_bytes);
  }
  // Without tensors the padding is the end of the file: some writers make it, some do not.
  if (!tensors_.empty() || pad_end_) out.resize(padded(out.size()));
  return out;
}

uint64_t Writer::total_bytes(uint64_t header_bytes) const {
  uint64_t total = header_bytes;
  for (const Entry& tensor : tensors_) {
    const bool pad = pad_end_ || &tensor != &tensors_.back();
    total += pad ? padded(tensor.size_bytes) : tensor.size_bytes;
  }
  return total;
}

void Writer::emit(const std::vector<std::byte>& head, const Sink& sink) const {
  sink(head);
  for (const Entry& tensor : tensors_) {
    uint64_t given = 0;
    const auto check = [&](bool right) {
      if (right) return;
      fail_argument("tensor", tensor.name,
                    fmt::format("found {} bytes of data, expected {}", given, tensor.size_bytes));
    };
    if (tensor.fill) {
      tensor.fill([&](std::span<const std::byte> piece) {
        given += piece.size();
        check(given <= tensor.size_bytes);
        sink(piece);
      });
      check(given == tensor.size_bytes);
    } else {
      put_zeros(sink, tensor.size_bytes);
    }
    if (pad_end_ || &tensor != &tensors_.back()) put_zeros(sink, padded(tensor.size_bytes) - tensor.size_bytes);
  }
}

void Writer::write(const std::string& path, const std::function<void(uint64_t done, uint64_t total)>& progress) const {
  const Bytes head = header();
  const uint64_t total = total_bytes(head.size());
  uint64_t done = 0;
  AtomicFile file(path);
  emit(head, [&](std::span<const std::byte> piece) {
    file.write(piece);
    done += piece.size();
    if (progress) progress(done, total);
  });
  file.commit();
}

std::vector<std::byte> Writer::bytes() const {
  const Bytes head = header();
  Bytes out;
  out.reserve(total_bytes(head.size()));
  emit(head, [&](std::span<const std::byte> piece) { append_bytes(out, piece.data(), piece.size()); });
  return out;
}

}  // namespace kz::gguf
