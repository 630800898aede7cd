#include "apps/cli/output_file.h"

#include <fmt/format.h>
#include <kazeia/error.h>

#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace kz::cli {

OutputFile::OutputFile(const std::string& path) : path_(path), temporary_(path + ".XXXXXX") {
  struct stat status{};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::io, fmt::format("{}: cannot write: not a regular file", path));
  }
  const int descriptor = mkstemp(temporary_.data());
  if (descriptor < 0) {
    temporary_.clear();
    fail("cannot create a file there");
  }
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(descriptor, 0666 & ~mask);  // mkstemp() makes private files; an output is an ordinary one
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
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot replace");
  temporary_.clear();
}

void OutputFile::fail(const char* what) const {
  throw Error(ErrorCode::io, fmt::format("{}: {}: {}", path_, what, std::strerror(errno)));
}

}  // namespace kz::cli
