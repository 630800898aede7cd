#include "gguf/file.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/file.h"
#include "gguf/cursor.h"
#include "gguf/directory.h"
#include "gguf/printable.h"
#include "gguf/split.h"
#include "gguf/values.h"

namespace kz::gguf {
namespace {

constexpr std::string_view kSplitCount = "split.count";
constexpr std::string_view kSplitNo = "split.no";
constexpr std::string_view kSplitTensors = "split.tensors.count";

/// One file of the model.
struct Shard {
  MappedFile mapped;  // empty for bytes in memory
  std::span<const std::byte> bytes;
  std::string name;
  Directory directory;
};

Shard make_shard(MappedFile mapped, const std::string& name) {
  Shard shard{std::move(mapped), {}, name, {}};
  shard.bytes = shard.mapped.bytes();
  shard.directory = parse(shard.bytes, name);
  return shard;
}

const KeyValue* find_key(const Directory& directory, std::string_view key) {
  const auto at = directory.key_index.find(key);
  return at == directory.key_index.end() ? nullptr : &directory.keys[at->second];
}

int64_t shard_integer(const Shard& shard, std::string_view key, int64_t fallback, int64_t hi) {
  const KeyValue* kv = find_key(shard.directory, key);
  return kv == nullptr ? fallback : Value(*kv, shard.name).integer(0, hi);
}

/// How many files the model has, by its own keys: 1 when it is not split.
int64_t split_count(const Shard& shard) {
  const int64_t count = shard_integer(shard, kSplitCount, 1, 65535);
  return count == 0 ? 1 : count;
}

/// The shard's name says the same as its keys.
void check_shard(const Shard& shard, const ShardName& name) {
  if (find_key(shard.directory, kSplitNo) == nullptr) {
    fail(ErrorCode::bad_file, shard.name, fmt::format("key '{}' is missing, expected {}", kSplitNo, name.number - 1));
  }
  const int64_t count = shard_integer(shard, kSplitCount, name.count, 65535);
  const int64_t number = shard_integer(shard, kSplitNo, 0, 65535);
  if (count != name.count) {
    fail(ErrorCode::bad_file, shard.name,
         fmt::format("key '{}': found {}, expected {} as in the file's name", kSplitCount, count, name.count));
  }
  if (number != name.number - 1) {
    fail(ErrorCode::bad_file, shard.name,
         fmt::format("key '{}': found {}, expected {} as in the file's name (where "
                     "parts count from 1)",
                     kSplitNo, number, name.number - 1));
  }
}

/// The name of a file that says it is one of several; refuses all but the first.
ShardName first_shard_name(const Shard& shard, int64_t count) {
  const auto name = parse_shard_name(shard.name);
  if (!name) {
    fail(ErrorCode::bad_file, shard.name,
         fmt::format("found one part of {} of a split model (key '{}') under a name that does not end in "
                     "'-00001-of-{:05d}.gguf': open the first part under its own name; parts that were joined with cat "
                     "are no model, merge them with a GGUF split tool",
                     count, kSplitCount, count));
  }
  if (name->number != 1) {
    fail(ErrorCode::bad_file, shard.name,
         fmt::format("found part {} of {} of a split model, expected the first: open {}", name->number, name->count,
                     printable_path(shard_path(*name, 1))));
  }
  check_shard(shard, *name);
  return *name;
}

Shard open_part(const ShardName& name, int number) {
  const std::string path = shard_path(name, number);
  try {
    ShardName part = name;
    part.number = number;
    Shard shard = make_shard(MappedFile::open(path), path);
    check_shard(shard, part);
    return shard;
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{} (part {} of {} of {})", error.what(), number, name.count,
                                          printable_path(shard_path(name, 1))));
  }
}

void check_tensor_count(const std::vector<Shard>& shards, size_t found) {
  const Shard& first = shards.front();
  const KeyValue* kv = find_key(first.directory, kSplitTensors);
  if (kv == nullptr) {
    fail(ErrorCode::bad_file, first.name, fmt::format("key '{}' is missing, expected {}", kSplitTensors, found));
  }
  const int64_t stated = Value(*kv, first.name).integer(0, std::numeric_limits<int64_t>::max());
  if (static_cast<uint64_t>(stated) != found) {
    fail(ErrorCode::bad_file, first.name,
         fmt::format("key '{}': found {}, expected {} as in the {} files together", kSplitTensors, stated, found,
                     shards.size()));
  }
}

}  // namespace

struct File::Impl {
  std::vector<Shard> shards;
  std::vector<TensorInfo> tensors;  // of all shards
  NameIndex tensor_index;

  /// Puts the tensors of all shards into one list.
  void collect() {
    for (size_t s = 0; s < shards.size(); ++s) {
      for (const TensorInfo& tensor : shards[s].directory.tensors) {
        const auto [at, fresh] = tensor_index.emplace(tensor.name, static_cast<uint32_t>(tensors.size()));
        if (!fresh) {
          fail(ErrorCode::bad_file, shards[s].name,
               fmt::format("tensor '{}': found a name that {} has too, expected each once", printable(tensor.name),
                           printable_path(shards[static_cast<size_t>(tensors[at->second].shard)].name)));
        }
        tensors.push_back(tensor);
        tensors.back().shard = static_cast<int>(s);
      }
    }
  }

  Value value(std::string_view key, std::string_view expected) const {
    const KeyValue* kv = find_key(shards.front().directory, key);
    if (kv == nullptr) {
      fail(ErrorCode::bad_file, shards.front().name,
           fmt::format("key '{}' is missing, expected {}", printable(key), expected));
    }
    return {*kv, shards.front().name};
  }

  const Shard& shard_of(const TensorInfo& info) const {
    KZ_CHECK(info.shard >= 0 && static_cast<size_t>(info.shard) < shards.size());
    return shards[static_cast<size_t>(info.shard)];
  }
};

File::File(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) { impl_->collect(); }
File::~File() = default;
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;

File File::open(const std::string& path) {
  auto impl = std::make_unique<Impl>();
  impl->shards.push_back(make_shard(MappedFile::open(path), path));
  const int64_t count = split_count(impl->shards.front());
  if (count == 1) return File(std::move(impl));
  const ShardName name = first_shard_name(impl->shards.front(), count);
  for (int number = 2; number <= name.count; ++number) impl->shards.push_back(open_part(name, number));
  File file(std::move(impl));
  check_tensor_count(file.impl_->shards, file.impl_->tensors.size());
  return file;
}

File File::open(int fd, uint64_t offset, uint64_t length, const std::string& name) {
  auto impl = std::make_unique<Impl>();
  impl->shards.push_back(make_shard(MappedFile::open(fd, offset, length, name), name));
  const int64_t count = split_count(impl->shards.front());
  if (count != 1) {
    fail(ErrorCode::bad_file, name,
         fmt::format("found one part of {} of a split model, expected a whole one: split "
                     "models are opened by the path of their first file",
                     count));
  }
  return File(std::move(impl));
}

File File::view(std::span<const std::byte> bytes, const std::string& name) {
  auto impl = std::make_unique<Impl>();
  impl->shards.push_back({{}, bytes, name, parse(bytes, name)});
  return File(std::move(impl));
}

const std::string& File::name() const { return impl_->shards.front().name; }
int File::version() const { return impl_->shards.front().directory.version; }
uint64_t File::alignment() const { return impl_->shards.front().directory.alignment; }
int File::n_shards() const { return static_cast<int>(impl_->shards.size()); }
const std::string& File::shard_name(int shard) const { return impl_->shards.at(static_cast<size_t>(shard)).name; }
std::span<const KeyValue> File::keys() const { return impl_->shards.front().directory.keys; }
std::span<const TensorInfo> File::tensors() const { return impl_->tensors; }

uint64_t File::size_bytes() const {
  uint64_t total = 0;
  for (const Shard& shard : impl_->shards) total += shard.bytes.size();
  return total;
}

bool File::padded_end() const {
  const Shard& last = impl_->shards.back();
  return last.bytes.size() > last.directory.data_end;
}

const KeyValue* File::find(std::string_view key) const { return find_key(impl_->shards.front().directory, key); }

int64_t File::integer(std::string_view key, int64_t lo, int64_t hi) const {
  return impl_->value(key, "an integer").integer(lo, hi);
}

int64_t File::integer_or(std::string_view key, int64_t fallback, int64_t lo, int64_t hi) const {
  return has(key) ? integer(key, lo, hi) : fallback;
}

double File::number(std::string_view key) const { return impl_->value(key, "a number").number(); }

double File::number_or(std::string_view key, double fallback) const { return has(key) ? number(key) : fallback; }

bool File::boolean_or(std::string_view key, bool fallback) const {
  return has(key) ? impl_->value(key, "a bool").boolean() : fallback;
}

std::string_view File::text(std::string_view key) const { return impl_->value(key, "a string").text(); }

std::string_view File::text_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? text(key) : fallback;
}

std::vector<int64_t> File::integers(std::string_view key) const {
  return impl_->value(key, "an array of integers").integers();
}

std::vector<float> File::floats(std::string_view key) const {
  return impl_->value(key, "an array of numbers").floats();
}

std::vector<std::string_view> File::texts(std::string_view key) const {
  return impl_->value(key, "an array of strings").texts();
}

const TensorInfo* File::find_tensor(std::string_view name) const {
  const auto at = impl_->tensor_index.find(name);
  return at == impl_->tensor_index.end() ? nullptr : &impl_->tensors[at->second];
}

Tensor File::data(const TensorInfo& info) const {
  const Shard& shard = impl_->shard_of(info);
  const DTypeInfo& type = dtype_info(info.dtype);
  const std::byte* start = shard.bytes.data() + shard.directory.data_start + info.offset;
  Tensor tensor;
  tensor.data = const_cast<std::byte*>(start);
  tensor.dtype = info.dtype;
  tensor.ne = info.ne;
  tensor.stride[0] = type.block_bytes;
  tensor.stride[1] = info.ne[0] / type.block_elements * type.block_bytes;
  tensor.stride[2] = tensor.stride[1] * info.ne[1];
  tensor.stride[3] = tensor.stride[2] * info.ne[2];
  return tensor;
}

File::Place File::place(const TensorInfo& info) const {
  const Shard& shard = impl_->shard_of(info);
  return {mapped(info.shard), shard.directory.data_start + info.offset};
}

void File::read(const TensorInfo& info, std::span<std::byte> to) const {
  KZ_CHECK(to.size() == info.size_bytes);
  const Place from = place(info);
  if (from.file != nullptr) return from.file->read(from.offset, to);
  std::copy_n(impl_->shard_of(info).bytes.data() + from.offset, to.size(), to.data());
}

void File::check_size() const {
  for (int i = 0; i < n_shards(); ++i) {
    if (mapped(i) != nullptr) mapped(i)->check_size();
  }
}

std::span<const std::byte> File::directory_bytes(int shard) const {
  const Shard& s = impl_->shards.at(static_cast<size_t>(shard));
  return s.bytes.first(std::min<size_t>(s.directory.data_start, s.bytes.size()));
}

const MappedFile* File::mapped(int shard) const {
  const Shard& s = impl_->shards.at(static_cast<size_t>(shard));
  return s.mapped.size_bytes() > 0 ? &s.mapped : nullptr;
}

void File::drop_resident() const {
  for (const Shard& shard : impl_->shards) {
    if (shard.mapped.size_bytes() > 0) shard.mapped.not_needed(0, shard.mapped.size_bytes());
  }
}

void File::will_need(const TensorInfo& info) const {
  const Shard& shard = impl_->shard_of(info);
  if (shard.mapped.size_bytes() > 0) shard.mapped.will_need(shard.directory.data_start + info.offset, info.size_bytes);
}

void File::not_needed(const TensorInfo& info) const {
  const Shard& shard = impl_->shard_of(info);
  if (shard.mapped.size_bytes() > 0) shard.mapped.not_needed(shard.directory.data_start + info.offset, info.size_bytes);
}

}  // namespace kz::gguf
