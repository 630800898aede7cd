#include "apps/cli/output_file.h"

#include <fmt/format.h>
#include <kazeia/error.h>

#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace kz::cli {
namespace {

struct Freed {
  void operator()(char* text) const { std::free(text); }
};

/// Where a path leads when all symbolic links are followed; the path itself when nothing is there.
std::string resolved(const std::string& path) {
  const std::unique_ptr<char, Freed> target(realpath(path.c_str(), nullptr));
  return target ? std::string(target.get()) : path;
}

}  // namespace

void refuse_input_as_output(const std::string& output, std::span<const std::string> inputs) {
  struct stat written{}, read{};
  if (stat(output.c_str(), &written) != 0) return;
  for (const std::string& input : inputs) {
    const bool same = stat(input.c_str(), &read) == 0 && read.st_dev == written.st_dev && read.st_ino == written.st_ino;
    if (!same) continue;
    throw Error(ErrorCode::bad_argument,
                fmt::format("{}: cannot write: it is the same file as the input {}", output, input));
  }
}

OutputFile::OutputFile(const std::string& path) : path_(path), target_(resolved(path)) {
  struct stat status{};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::io, fmt::format("{}: cannot write: not a regular file", path));
  }
  if (!exists && lstat(path.c_str(), &status) == 0) {
    throw Error(ErrorCode::io, fmt::format("{}: cannot write: a symbolic link that leads nowhere", path));
  }
  temporary_ = target_ + ".XXXXXX";
  const int descriptor = mkstemp(temporary_.data());
  if (descriptor < 0) {
    temporary_.clear();
    fail("cannot create a file there");
  }
  removed_at_exit_.emplace(temporary_);
  const mode_t mask = umask(0);
  umask(mask);
  // mkstemp() makes private files; an output is an ordinary one, and an existing one keeps its permissions.
  fchmod(descriptor, exists ? status.st_mode & 07777 : 0666 & ~mask);
  file_ = fdopen(descriptor, "wb");
}

OutputFile::~OutputFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail("cannot write");
}

void OutputFile::commit() {
  if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0) fail("cannot write");
  const bool closed = std::fclose(file_) == 0;
  file_ = nullptr;
  if (!closed) fail("cannot write");
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot replace");
  removed_at_exit_.reset();
  temporary_.clear();
}

void OutputFile::fail(const char* what) const {
  throw Error(ErrorCode::io, fmt::format("{}: {}: {}", path_, what, std::strerror(errno)));
}

}  // namespace kz::cli
