// Any bytes, read as a GGUF file: it opens or throws kz::Error with one clean line. What opens is looked up in every
// way, its tensors are read, and what the writer makes of it opens again with the same content.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <kazeia/error.h>

#include "gguf/file.h"
#include "gguf/writer.h"

namespace {

using kz::gguf::File;
using kz::gguf::KeyValue;
using kz::gguf::TensorInfo;
using kz::gguf::Writer;

void require(bool condition) {
  if (!condition) std::abort();
}

/// An error of ours is expected; its text is one line without control characters, and it is no bug of ours.
template <class Action>
void attempt(Action&& action) {
  try {
    action();
  } catch (const kz::Error& error) {
    require(error.code() != kz::ErrorCode::internal);
    for (const char* c = error.what(); *c != 0; ++c) require(static_cast<unsigned char>(*c) >= 0x20 && *c != 0x7f);
  }
}

volatile uint64_t sink = 0;

void look_up(const File& file, const KeyValue& kv) {
  require(file.find(kv.key) == &kv);
  attempt([&] { require(file.integer(kv.key, -1, 100) <= 100); });
  attempt([&] { sink = sink + static_cast<uint64_t>(file.integer_or(kv.key, 0, INT64_MIN, INT64_MAX)); });
  attempt([&] { sink = sink + (file.number(kv.key) > 0 ? 1 : 0); });
  attempt([&] { sink = sink + (file.number_or(kv.key, 1) > 0 ? 1 : 0); });
  attempt([&] { sink = sink + (file.boolean_or(kv.key, false) ? 1 : 0); });
  attempt([&] { sink = sink + file.text(kv.key).size() + file.text_or(kv.key, "").size(); });
  attempt([&] { require(file.integers(kv.key).size() == kv.count); });
  attempt([&] { require(file.floats(kv.key).size() == kv.count); });
  attempt([&] {
    for (const std::string_view text : file.texts(kv.key)) {
      for (const char c : text) sink = sink + static_cast<uint64_t>(c);
    }
  });
}

void read_tensor(const File& file, const TensorInfo& info) {
  require(file.find_tensor(info.name) == &info);
  const kz::Tensor tensor = file.data(info);
  for (uint64_t i = 0; i < info.size_bytes; ++i) sink = sink + static_cast<uint64_t>(tensor.data[i]);
  file.will_need(info);
  file.not_needed(info);
}

void write_again(const File& file) {
  const std::vector<std::byte> bytes = Writer::copy_of(file).bytes();
  const File copy = File::view(bytes, "copy");
  require(copy.version() == file.version() && copy.alignment() == file.alignment());
  require(copy.keys().size() == file.keys().size() && copy.tensors().size() == file.tensors().size());
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const TensorInfo& a = file.tensors()[i];
    const TensorInfo& b = copy.tensors()[i];
    require(a.name == b.name && a.dtype == b.dtype && a.ne == b.ne && a.size_bytes == b.size_bytes);
  }
  require(Writer::copy_of(copy).bytes() == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size_bytes) {
  const auto bytes = std::as_bytes(std::span(data, size_bytes));
  attempt([&] {
    const File file = File::view(bytes, "fuzz");
    for (const KeyValue& kv : file.keys()) look_up(file, kv);
    for (const TensorInfo& info : file.tensors()) read_tensor(file, info);
    attempt([&] { file.text("absent"); });
    if (file.alignment() <= 4096) write_again(file);  // larger ones make large files of padding
  });
  return 0;
}
