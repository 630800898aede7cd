// What the system says about this process and about a file.
#include <fcntl.h>
#include <fmt/format.h>
#include <kazeia/bench.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace kz {
namespace {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OwnedFile = std::unique_ptr<std::FILE, FileCloser>;

/// FNV-1a (Fowler, Noll, Vo), 64 bits.
class Fnv {
 public:
  void add(const void* bytes, size_t n) {
    const auto* p = static_cast<const unsigned char*>(bytes);
    for (size_t i = 0; i < n; ++i) value_ = (value_ ^ p[i]) * 0x100000001b3u;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

void add_piece(Fnv& hash, std::FILE* file, const std::string& path, int64_t offset, int64_t length) {
  std::vector<unsigned char> bytes(static_cast<size_t>(length));
  const bool found = fseeko(file, offset, SEEK_SET) == 0;
  if (!found || std::fread(bytes.data(), 1, bytes.size(), file) != bytes.size()) {
    throw Error(ErrorCode::io, fmt::format("{}: cannot read {} bytes at {}", path, length, offset));
  }
  hash.add(bytes.data(), bytes.size());
}

void add_file(Fnv& hash, const std::string& path) {
  constexpr int64_t kHead = int64_t{1} << 20, kPiece = 4096, kPlaces = 255;
  const OwnedFile file(std::fopen(path.c_str(), "rb"));
  if (!file || fseeko(file.get(), 0, SEEK_END) != 0) {
    throw Error(ErrorCode::io, fmt::format("{}: cannot open: {}", path, std::strerror(errno)));
  }
  const int64_t size = ftello(file.get());
  hash.add(&size, sizeof(size));
  add_piece(hash, file.get(), path, 0, std::min(size, kHead));
  for (int64_t place = 1; place <= kPlaces && size > kHead; ++place) {
    add_piece(hash, file.get(), path, (size - kPiece) * place / kPlaces, kPiece);
  }
}

}  // namespace

ProcessMemory process_memory() {
  ProcessMemory memory;
  const OwnedFile file(std::fopen("/proc/self/status", "r"));
  if (!file) return memory;
  char line[256];
  while (std::fgets(line, sizeof(line), file.get()) != nullptr) {
    long long kib = 0;
    if (std::sscanf(line, "VmHWM: %lld", &kib) == 1) memory.peak_bytes = kib << 10;
    if (std::sscanf(line, "RssAnon: %lld", &kib) == 1) memory.anonymous_bytes = kib << 10;
    if (std::sscanf(line, "RssFile: %lld", &kib) == 1) memory.file_bytes = kib << 10;
  }
  return memory;
}

bool reset_peak_memory() {
  const int file = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool done = ::write(file, "5", 1) == 1;
  ::close(file);
  return done;
}

std::string file_fingerprint(const std::vector<std::string>& paths) {
  Fnv hash;
  for (const std::string& path : paths) add_file(hash, path);
  return fmt::format("{:016x}", hash.value());
}

}  // namespace kz
