#include "cpu/packed_cache.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <system_error>

#include "core/error.h"
#include "core/hash.h"
#include "cpu/strip_loader.h"

namespace kz {
namespace {

/// Changes with the bytes of any strip, the order of the block and this file's form.
constexpr uint64_t kLayoutVersion = 1;
constexpr char kMagic[8] = {'K', 'Z', 'P', 'A', 'C', 'K', 'E', 'D'};
constexpr uint64_t kBlockStart = 4096;  // one page, so that the block is aligned like memory

std::string digest_of(std::initializer_list<std::string_view> texts) {
  Digest digest;
  for (const std::string_view text : texts) digest.add(text);
  return digest.finish();
}

template <class T>
std::span<const std::byte> bytes_of(const T* values, size_t n) {
  return std::as_bytes(std::span(values, n));
}

[[noreturn]] void damaged(const std::string& what) { throw Error(ErrorCode::bad_file, what); }

}  // namespace

/// The start of the file. All numbers are little-endian.
struct PackedCache::Header {
  char magic[8];
  uint64_t version;
  char key[64];    // of the content and the plan
  char stamp[64];  // of what the system says of the model files
  uint64_t block_bytes;
  uint64_t n_entries;
  uint64_t entries_checksum;
  uint64_t header_checksum;  // of all before it
};

/// One piece of the block; together they are all of it, in order. Behind the block.
struct PackedCache::Entry {
  uint64_t place, size_bytes, checksum;
};

PackedCache::PackedCache(const std::string& folder, std::span<const WeightSource> sources, const PackedPlan& plan,
                         const ImportContext& context)
    : sources_(sources),
      plan_(plan),
      folder_(folder),
      key_(digest_of({std::to_string(kLayoutVersion), " ", context.content_key, "\n", plan_text(plan, sources)})),
      stamp_(digest_of({context.stamp})) {
  path_ = folder_ + "/" + key_.substr(0, 32) + ".kzpacked";
}

const std::byte* PackedCache::block(const MappedFile& file) { return file.bytes().data() + kBlockStart; }

PackedCache::Header PackedCache::header(const std::vector<Entry>& entries) const {
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof(kMagic));
  h.version = kLayoutVersion;
  std::memcpy(h.key, key_.data(), sizeof(h.key));
  std::memcpy(h.stamp, stamp_.data(), sizeof(h.stamp));
  h.block_bytes = static_cast<uint64_t>(plan_.block_bytes);
  h.n_entries = entries.size();
  h.entries_checksum = checksum(bytes_of(entries.data(), entries.size()));
  h.header_checksum = checksum(bytes_of(&h, 1).first(offsetof(Header, header_checksum)));
  return h;
}

std::optional<MappedFile> PackedCache::open(ThreadPool& pool, std::vector<std::string>& notes) const {
  std::error_code ignored;
  if (!std::filesystem::exists(path_, ignored)) return std::nullopt;
  try {
    MappedFile file = MappedFile::open(path_);
    check(file, pool);
    return file;
  } catch (const Error& error) {
    notes.push_back("packed cache " + path_ + " is made anew: " + error.what());
    return std::nullopt;
  }
}

void PackedCache::check(const MappedFile& file, ThreadPool& pool) const {
  const auto block_bytes = static_cast<uint64_t>(plan_.block_bytes);
  Header h;
  if (file.size_bytes() < kBlockStart) damaged("it is too short");
  file.read(0, {reinterpret_cast<std::byte*>(&h), sizeof(h)});
  if (std::memcmp(h.magic, kMagic, sizeof(kMagic)) != 0) damaged("it is no such file");
  if (h.version != kLayoutVersion) damaged("it is of another version");
  if (h.header_checksum != checksum(bytes_of(&h, 1).first(offsetof(Header, header_checksum))))
    damaged("its head is damaged");
  if (std::memcmp(h.key, key_.data(), sizeof(h.key)) != 0) damaged("it belongs to another model");
  if (std::memcmp(h.stamp, stamp_.data(), sizeof(h.stamp)) != 0) damaged("the model was written to, or copied, since");
  const uint64_t rest = file.size_bytes() - kBlockStart;
  if (h.block_bytes != block_bytes || block_bytes > rest || (rest - block_bytes) % sizeof(Entry) != 0 ||
      (rest - block_bytes) / sizeof(Entry) != h.n_entries) {
    damaged("its size is wrong");
  }
  std::vector<Entry> entries(h.n_entries);
  file.read(kBlockStart + block_bytes, std::as_writable_bytes(std::span(entries)));
  if (checksum(bytes_of(entries.data(), entries.size())) != h.entries_checksum) damaged("its table is damaged");
  uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.place != end || entry.size_bytes > block_bytes - end) damaged("its table is wrong");
    end += entry.size_bytes;
  }
  if (end != block_bytes) damaged("its table is wrong");
  file.will_need(0, file.size_bytes());
  std::atomic<bool> equal{true};
  const std::span<const std::byte> data(block(file), block_bytes);
  pool.parallel_for(static_cast<int64_t>(entries.size()), 1, [&](int64_t begin, int64_t stop, int) {
    for (int64_t i = begin; i < stop; ++i) {
      const Entry& entry = entries[static_cast<size_t>(i)];
      if (checksum(data.subspan(entry.place, entry.size_bytes)) != entry.checksum) equal = false;
    }
  });
  if (!equal) damaged("its weights are damaged");
}

void PackedCache::write(ThreadPool& pool, const ImportContext& context, bool& write_failed) const {
  std::vector<Entry> entries;
  std::mutex lock;  // guards entries and write_failed
  const auto guarded = [&](const auto& action) {
    try {
      action();
    } catch (const Error&) {
      const std::lock_guard guard(lock);
      write_failed = true;
      throw;
    }
  };
  std::optional<AtomicFile> file;
  guarded([&] {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) throw Error(ErrorCode::io, "folder " + folder_ + ": cannot create: " + error.message());
    file.emplace(path_);
    file->reserve(kBlockStart + static_cast<uint64_t>(plan_.block_bytes));
  });
  load_packed(sources_, plan_, pool, context.progress, [&](int64_t place, std::span<const std::byte> bytes) {
    const Entry entry{static_cast<uint64_t>(place), bytes.size(), checksum(bytes)};
    guarded([&] { file->write_at(kBlockStart + entry.place, bytes); });
    const std::lock_guard guard(lock);
    entries.push_back(entry);
  });
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.place < b.place; });
  const Header h = header(entries);
  guarded([&] {
    file->write_at(kBlockStart + h.block_bytes, bytes_of(entries.data(), entries.size()));
    file->write_at(0, bytes_of(&h, 1));
    file->commit();
  });
}

std::optional<MappedFile> PackedCache::create(ThreadPool& pool, ImportContext& context) const {
  bool write_failed = false;
  try {
    write(pool, context, write_failed);
  } catch (const Error& error) {
    if (!write_failed) throw;
    context.notes.push_back("no packed cache: " + std::string(error.what()));
    return std::nullopt;
  }
  return open(pool, context.notes);  // what the disk took is looked at once before it is used
}

}  // namespace kz
