#include "gguf/identity.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "core/file.h"
#include "core/hash.h"

namespace kz::gguf {
namespace {

constexpr uint64_t kSamples = 64;  // of a file, the first at its start and the last at its end
constexpr uint64_t kSampleBytes = 4096;

void add_samples(const MappedFile& file, Digest& digest) {
  const uint64_t size = file.size_bytes();
  std::vector<std::byte> sample(std::min(kSampleBytes, size));
  const uint64_t room = size - sample.size();
  for (uint64_t i = 0; i < kSamples; ++i) {
    file.read(room / (kSamples - 1) * i + (i + 1 == kSamples ? room % (kSamples - 1) : 0), sample);
    digest.add(sample);
  }
}

}  // namespace

Identity identify(const File& file) {
  Identity identity;
  Digest digest;
  for (int shard = 0; shard < file.n_shards(); ++shard) {
    const MappedFile* mapped = file.mapped(shard);
    if (mapped == nullptr) return {};
    digest.add(fmt::format("{} ", mapped->size_bytes()));
    digest.add(file.directory_bytes(shard));
    add_samples(*mapped, digest);
    const FileStamp s = mapped->stamp();
    identity.stamp += fmt::format("{} {} {} {} {}\n", s.size_bytes, s.inode, s.modified_ns, s.changed_ns, s.start);
  }
  identity.content = digest.finish();
  return identity;
}

}  // namespace kz::gguf
