#include "apps/cli/console.h"

#include <fmt/format.h>
#include <kazeia/error.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace kz::cli {
namespace {

[[noreturn]] void fail_out(int reason) {
  std::clearerr(stdout);
  const char* text = reason != 0 ? std::strerror(reason) : "an earlier write failed";
  throw Error(ErrorCode::io, fmt::format("cannot write to standard output: {}", text));
}

}  // namespace

void write_out(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_out(errno);
}

void flush_out() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail_out(errno);
}

void write_err(std::string_view text) noexcept {
  // stderr is unbuffered: one call, one write.
  if (std::fwrite(text.data(), 1, text.size(), stderr) != text.size()) std::clearerr(stderr);
}

}  // namespace kz::cli
