// The block of packed weights as a file of its own, mapped instead of packed at the next start.
//
// docs/decisions/loading.md says what is checked and what is trusted.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/thread_pool.h"
#include "cpu/packed_plan.h"

namespace kz {

/// The cache file of one plan of one model in one folder.
class PackedCache {
 public:
  PackedCache(const std::string& folder, std::span<const WeightSource> sources, const PackedPlan& plan,
              const ImportContext& context);

  /// Maps the file when it is there, belongs to these model files and has not changed by a bit. Nothing otherwise,
  /// with a note why unless it is just not there.
  std::optional<MappedFile> open(ThreadPool& pool, std::vector<std::string>& notes) const;
  /// Packs the weights into a new file and maps it. Nothing, with a note and without a file left behind, when it
  /// cannot be written. Throws what load_packed() throws when the model cannot be read.
  std::optional<MappedFile> create(ThreadPool& pool, ImportContext& context) const;

  /// The block in a mapped file.
  static const std::byte* block(const MappedFile& file);
  const std::string& path() const { return path_; }

 private:
  struct Header;
  struct Entry;
  Header header(const std::vector<Entry>& entries) const;
  void check(const MappedFile& file, ThreadPool& pool) const;
  void write(ThreadPool& pool, const ImportContext& context, bool& write_failed) const;

  std::span<const WeightSource> sources_;
  const PackedPlan& plan_;
  std::string folder_, path_, key_, stamp_;
};

}  // namespace kz
