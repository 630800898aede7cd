// Names and keys of models that are split over several files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kz::gguf {

/// The parts of "PREFIX-00002-of-00005.gguf".
struct ShardName {
  std::string prefix;  ///< with the folder
  int number = 1;      ///< from 1
  int count = 1;
};

/// The parts of a path that ends like a shard; nothing for any other name, for number 0, and for a number above the
/// count: those only look like shards.
std::optional<ShardName> parse_shard_name(std::string_view path);

/// The path of shard `number` (from 1) of the model.
std::string shard_path(const ShardName& name, int number);

}  // namespace kz::gguf
