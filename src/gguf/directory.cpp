#include "gguf/directory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "gguf/cursor.h"
#include "gguf/printable.h"

namespace kz::gguf {
namespace {

constexpr uint64_t kMaxArrayCount = uint64_t{1} << 30;
constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxTensorNameBytes = 63;
constexpr uint64_t kMaxAlignment = uint64_t{1} << 20;
constexpr uint32_t kMaxDims = 4;
constexpr uint64_t kMinKeyBytes = 13;     // of a key and its value: length 8, type 4, value 1
constexpr uint64_t kMinTensorBytes = 24;  // of a tensor's entry
constexpr size_t kReserve = 2048;         // entries to make room for before any of them was seen
constexpr std::string_view kAlignmentKey = "general.alignment";

struct Counts {
  uint64_t keys = 0;
  uint64_t tensors = 0;
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// What people hand over instead of a model, by its first bytes.
std::string_view guess_content(std::string_view start) {
  for (const std::string_view page : {"<!DO", "<!do", "<htm", "<HTM"}) {
    if (start.starts_with(page)) return "; this looks like an HTML page, not a model";
  }
  if (start.starts_with("version https://git-lfs")) {
    return "; this looks like a Git LFS pointer, not the model itself";
  }
  if (start.starts_with("PK\x03\x04")) return "; this looks like a ZIP archive, not a model";
  for (const std::string_view old : {"lmgg", "tjgg", "algg", "fmgg"}) {
    if (start.starts_with(old)) return "; this is a model in the format that came before GGUF: convert it";
  }
  return "";
}

void check_magic(std::span<const std::byte> bytes, const std::string& file) {
  const std::string_view start = as_text(bytes.first(std::min<size_t>(bytes.size(), 24)));
  if (start.starts_with("GGUF")) return;
  fail(ErrorCode::bad_file, file,
       fmt::format("not a GGUF file: found '{}' as the first bytes, expected 'GGUF'{}", printable(start.substr(0, 4)),
                   guess_content(start)));
}

int read_version(Cursor& cursor) {
  const auto version = cursor.read<uint32_t>("the version");
  if (version == 2 || version == 3) return static_cast<int>(version);
  if (version != 0 && (version & 0xffffu) == 0) {
    fail(ErrorCode::unsupported, cursor.file(),
         fmt::format("found a big-endian GGUF file (version bytes read as 0x{:08x}), expected little-endian: "
                     "convert it on the machine that it was made for",
                     version));
  }
  fail(ErrorCode::unsupported, cursor.file(), fmt::format("unsupported GGUF version {}, expected 2 or 3", version));
}

uint64_t read_count(Cursor& cursor, const char* what) {
  const auto count = cursor.read<int64_t>(what);
  if (count < 0) cursor.fail_here(ErrorCode::bad_file, fmt::format("found {} as {}, expected 0 or more", count, what));
  return static_cast<uint64_t>(count);
}

void check_count(const Cursor& cursor, uint64_t count, uint64_t entry_bytes, const char* what) {
  const uint64_t limit = cursor.remaining() / entry_bytes;
  if (count <= limit) return;
  cursor.fail_here(ErrorCode::bad_file, fmt::format("found {} as {}, expected at most {} in the {} bytes that are left",
                                                    count, what, limit, cursor.remaining()));
}

Counts read_header(Cursor& cursor, Directory& directory) {
  cursor.take(4, "the magic");
  directory.version = read_version(cursor);
  Counts counts;
  counts.tensors = read_count(cursor, "the number of tensors");
  counts.keys = read_count(cursor, "the number of keys");
  check_count(cursor, counts.tensors, kMinTensorBytes, "the number of tensors");
  check_count(cursor, counts.keys, kMinKeyBytes, "the number of keys");
  return counts;
}

/// Names are shown, compared and hashed: they are text, and a C string of them loses nothing.
void check_name(const Cursor& cursor, std::string_view name, uint64_t max_bytes) {
  const auto refuse = [&](std::string_view found, const std::string& expected) {
    cursor.fail_here(ErrorCode::bad_file, fmt::format("found {} '{}', expected {}", found, printable(name), expected));
  };
  if (name.empty()) cursor.fail_here(ErrorCode::bad_file, "found an empty name, expected at least one byte");
  if (name.size() > max_bytes) {
    refuse(fmt::format("a name of {} bytes", name.size()), fmt::format("at most {}", max_bytes));
  }
  if (name.find('\0') != std::string_view::npos) refuse("a zero byte in the name", "none");
  if (!is_utf8(name)) refuse("the name", "valid UTF-8");
}

ValueType read_value_type(Cursor& cursor, const char* field) {
  const auto id = cursor.read<int32_t>(field);
  if (id < 0 || id > static_cast<int32_t>(ValueType::f64)) {
    cursor.fail_here(ErrorCode::bad_file, fmt::format("found {} as {}, expected an id from 0 to 12", id, field));
  }
  return static_cast<ValueType>(id);
}

/// Walks over `count` texts that lie back to back.
void skip_texts(Cursor& cursor, uint64_t count, const char* field) {
  for (uint64_t i = 0; i < count; ++i) cursor.text(field);
}

void read_array(Cursor& cursor, KeyValue& kv) {
  kv.element = read_value_type(cursor, "the type of the array's elements");
  if (kv.element == ValueType::array) {
    cursor.fail_here(ErrorCode::bad_file, "found an array of arrays, expected an array of numbers or texts");
  }
  kv.count = cursor.read<uint64_t>("the number of the array's elements");
  const uint64_t element_bytes = kv.element == ValueType::string ? sizeof(uint64_t) : scalar_bytes(kv.element);
  const uint64_t limit = std::min(kMaxArrayCount, cursor.remaining() / element_bytes);
  if (kv.count > limit) {
    cursor.fail_here(ErrorCode::bad_file, fmt::format("found an array of {} elements of type {}, expected at most {}",
                                                      kv.count, value_type_name(kv.element), limit));
  }
}

KeyValue read_key(Cursor& cursor, std::span<const std::byte> bytes) {
  KeyValue kv;
  kv.key = cursor.text("the key");
  check_name(cursor, kv.key, kMaxKeyBytes);
  cursor.place.name = kv.key;
  kv.type = read_value_type(cursor, "the type of the value");
  kv.element = kv.type;
  if (kv.type == ValueType::array) read_array(cursor, kv);
  const uint64_t start = cursor.position();
  if (kv.element == ValueType::string) {
    skip_texts(cursor, kv.count, kv.type == ValueType::array ? "a text of the array" : "the value");
  } else {
    cursor.take(kv.count * scalar_bytes(kv.element), "the value");
  }
  kv.bytes = bytes.subspan(start, cursor.position() - start);
  return kv;
}

void read_keys(Cursor& cursor, std::span<const std::byte> bytes, uint64_t count, Directory& directory) {
  directory.keys.reserve(std::min<uint64_t>(count, kReserve));
  for (uint64_t i = 0; i < count; ++i) {
    cursor.place = {"key", i, {}};
    const KeyValue kv = read_key(cursor, bytes);
    const auto [at, fresh] = directory.key_index.emplace(kv.key, static_cast<uint32_t>(i));
    if (!fresh) {
      cursor.fail_here(ErrorCode::bad_file, fmt::format("found a key that key {} has, expected each once", at->second));
    }
    directory.keys.push_back(kv);
  }
}

uint64_t read_alignment(const Directory& directory, const std::string& file) {
  const auto found = directory.key_index.find(kAlignmentKey);
  if (found == directory.key_index.end()) return 32;
  const KeyValue& kv = directory.keys[found->second];
  if (kv.type != ValueType::u32) {
    fail(ErrorCode::bad_file, file,
         fmt::format("key '{}': found type {}, expected type u32", kAlignmentKey, value_type_name(kv.type)));
  }
  uint32_t alignment = 0;
  std::memcpy(&alignment, kv.bytes.data(), sizeof(alignment));
  if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
    fail(ErrorCode::bad_file, file,
         fmt::format("key '{}': found {}, expected a power of two up to {}", kAlignmentKey, alignment, kMaxAlignment));
  }
  return alignment;
}

const DTypeInfo& check_dtype(const Cursor& cursor, int32_t id) {
  const DTypeInfo* info = find_dtype(id);
  if (info != nullptr && info->block_elements > 0) return *info;
  constexpr std::array<int32_t, 8> kRemoved{4, 5, 31, 32, 33, 36, 37, 38};
  const bool removed = std::find(kRemoved.begin(), kRemoved.end(), id) != kRemoved.end();
  cursor.fail_here(ErrorCode::unsupported,
                   fmt::format("found type id {}, {}, expected a known type", id,
                               removed ? "which was removed from the format" : "which is unknown"));
}

/// a * b, or the message that the shape is too large.
int64_t multiply(const Cursor& cursor, int64_t a, int64_t b) {
  if (b != 0 && a > std::numeric_limits<int64_t>::max() / b) {
    cursor.fail_here(ErrorCode::bad_file, "found a shape of 2^63 or more bytes or elements, expected fewer");
  }
  return a * b;
}

void read_shape(Cursor& cursor, TensorInfo& tensor) {
  const auto n_dims = cursor.read<uint32_t>("the number of dimensions");
  if (n_dims > kMaxDims) {
    cursor.fail_here(ErrorCode::bad_file, fmt::format("found {} dimensions, expected at most {}", n_dims, kMaxDims));
  }
  tensor.n_dims = static_cast<int>(n_dims);
  for (uint32_t i = 0; i < n_dims; ++i) {
    tensor.ne[i] = cursor.read<int64_t>("the shape");
    if (tensor.ne[i] < 0) {
      cursor.fail_here(ErrorCode::bad_file,
                       fmt::format("found {} as dimension {}, expected 0 or more", tensor.ne[i], i));
    }
  }
}

/// Bytes of the tensor. A dimension of 0 counts as 1 in the overflow checks, so that strides cannot overflow either.
uint64_t tensor_bytes(const Cursor& cursor, const TensorInfo& tensor, const DTypeInfo& type) {
  if (tensor.ne[0] % type.block_elements != 0) {
    cursor.fail_here(ErrorCode::bad_file,
                     fmt::format("found rows of {} elements, expected a multiple of {} for type {}", tensor.ne[0],
                                 type.block_elements, type.name));
  }
  const auto at_least_1 = [](int64_t n) { return std::max<int64_t>(n, 1); };
  int64_t elements = at_least_1(tensor.ne[0]);
  int64_t bytes = multiply(cursor, at_least_1(tensor.ne[0] / type.block_elements), type.block_bytes);
  bool none = tensor.ne[0] == 0;
  for (size_t i = 1; i < tensor.ne.size(); ++i) {
    elements = multiply(cursor, elements, at_least_1(tensor.ne[i]));
    bytes = multiply(cursor, bytes, at_least_1(tensor.ne[i]));
    none = none || tensor.ne[i] == 0;
  }
  return none ? 0 : static_cast<uint64_t>(bytes);
}

TensorInfo read_tensor(Cursor& cursor) {
  TensorInfo tensor;
  tensor.name = cursor.text("the tensor's name");
  check_name(cursor, tensor.name, kMaxTensorNameBytes);
  cursor.place.name = tensor.name;
  read_shape(cursor, tensor);
  const DTypeInfo& type = check_dtype(cursor, cursor.read<int32_t>("the type id"));
  tensor.dtype = type.dtype;
  tensor.size_bytes = tensor_bytes(cursor, tensor, type);
  tensor.offset = cursor.read<uint64_t>("the offset");
  return tensor;
}

void read_tensors(Cursor& cursor, uint64_t count, Directory& directory) {
  directory.tensors.reserve(std::min<uint64_t>(count, kReserve));
  for (uint64_t i = 0; i < count; ++i) {
    cursor.place = {"tensor", i, {}};
    const TensorInfo tensor = read_tensor(cursor);
    const auto [at, fresh] = directory.tensor_index.emplace(tensor.name, static_cast<uint32_t>(i));
    if (!fresh) {
      cursor.fail_here(ErrorCode::bad_file,
                       fmt::format("found a name that tensor {} has, expected each once", at->second));
    }
    if (tensor.offset % directory.alignment != 0) {
      cursor.fail_here(ErrorCode::bad_file, fmt::format("found offset {}, expected a multiple of the alignment {}",
                                                        tensor.offset, directory.alignment));
    }
    directory.tensors.push_back(tensor);
  }
}

uint64_t add_saturating(uint64_t a, uint64_t b) {
  return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max() : a + b;
}

/// Every tensor lies inside the file; only then are the sums below free of overflow.
void check_bounds(Directory& directory, uint64_t file_bytes, const std::string& file) {
  directory.data_end = directory.data_start;
  for (const TensorInfo& tensor : directory.tensors) {
    const uint64_t end = add_saturating(add_saturating(directory.data_start, tensor.offset), tensor.size_bytes);
    if (end > file_bytes) {
      fail(ErrorCode::bad_file, file,
           fmt::format("tensor '{}' ends at byte {}, found a file of {} bytes: it is cut short or damaged",
                       printable(tensor.name), end, file_bytes));
    }
    directory.data_end = std::max(directory.data_end, end);
  }
}

void check_overlap(const Directory& directory, const std::string& file) {
  std::vector<const TensorInfo*> order;
  order.reserve(directory.tensors.size());
  for (const TensorInfo& tensor : directory.tensors) {
    if (tensor.size_bytes > 0) order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const TensorInfo* a, const TensorInfo* b) {
    return a->offset != b->offset ? a->offset < b->offset : a < b;
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorInfo& before = *order[i - 1];
    const TensorInfo& after = *order[i];
    if (after.offset >= before.offset + before.size_bytes) continue;
    fail(ErrorCode::bad_file, file,
         fmt::format("tensor '{}': found offset {}, expected at least {} where tensor '{}' ends: they overlap",
                     printable(after.name), after.offset, before.offset + before.size_bytes, printable(before.name)));
  }
}

}  // namespace

std::string_view value_type_name(ValueType type) {
  constexpr std::array<std::string_view, 13> kNames{"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                    "bool", "string", "array", "u64", "i64", "f64"};
  const auto id = static_cast<size_t>(type);
  return id < kNames.size() ? kNames[id] : "unknown";
}

uint64_t scalar_bytes(ValueType type) noexcept {
  switch (type) {
    case ValueType::u8:
    case ValueType::i8:
    case ValueType::boolean:
      return 1;
    case ValueType::u16:
    case ValueType::i16:
      return 2;
    case ValueType::u32:
    case ValueType::i32:
    case ValueType::f32:
      return 4;
    case ValueType::u64:
    case ValueType::i64:
    case ValueType::f64:
      return 8;
    case ValueType::string:
    case ValueType::array:
      break;
  }
  return 0;
}

Directory parse(std::span<const std::byte> bytes, const std::string& name) {
  check_magic(bytes, name);
  Directory directory;
  Cursor cursor(bytes, name);
  const Counts counts = read_header(cursor, directory);
  read_keys(cursor, bytes, counts.keys, directory);
  directory.alignment = read_alignment(directory, name);
  read_tensors(cursor, counts.tensors, directory);
  const uint64_t unpadded = cursor.position() % directory.alignment;
  directory.data_start = cursor.position();
  if (counts.tensors > 0 && unpadded != 0) directory.data_start += directory.alignment - unpadded;
  check_bounds(directory, bytes.size(), name);
  check_overlap(directory, name);
  return directory;
}

}  // namespace kz::gguf
