#include "gguf/cursor.h"

#include <fmt/format.h>

#include "gguf/printable.h"

namespace kz::gguf {

std::string describe(const Place& place) {
  if (place.kind == std::string_view("header")) return place.kind;
  if (place.name.empty()) return fmt::format("{} {}", place.kind, place.index);
  return fmt::format("{} {} '{}'", place.kind, place.index, printable(place.name));
}

void fail(ErrorCode code, const std::string& file, const std::string& text) {
  throw Error(code, fmt::format("{}: {}", printable_path(file), text));
}

void Cursor::fail_here(ErrorCode code, const std::string& text) const {
  fail(code, file_, fmt::format("{}: {}", describe(place), text));
}

void Cursor::fail_end(uint64_t wanted, const char* field) const {
  fail_here(ErrorCode::bad_file,
            fmt::format("the file ends inside {}: found {} bytes, expected {}", field, remaining(), wanted));
}

void Cursor::fail_text(uint64_t length, const char* field) const {
  const uint64_t limit = remaining() < kMaxTextBytes ? remaining() : kMaxTextBytes;
  fail_here(ErrorCode::bad_file,
            fmt::format("{}: found a text of {} bytes, expected at most {}", field, length, limit));
}

}  // namespace kz::gguf
