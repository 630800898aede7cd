// Reads the metadata of one architecture and collects every problem.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "model/model.h"
#include "model/problems.h"

namespace kz {

/// Typed look-up of the keys "ARCHITECTURE.key". A value that is missing or wrong is noted, and a harmless one (the
/// lower bound, or the default) is returned, so that reading goes on; raise() then reports everything at once.
class ConfigReader {
 public:
  ConfigReader(const gguf::File& file, std::string_view architecture) : file_(file), architecture_(architecture) {}

  const gguf::File& file() const { return file_; }
  const std::string& architecture() const { return architecture_; }
  std::string full_key(std::string_view key) const { return architecture_ + '.' + std::string(key); }
  bool has(std::string_view key) const { return file_.has(full_key(key)); }

  int64_t integer(std::string_view key, int64_t lo, int64_t hi);
  int64_t integer_or(std::string_view key, int64_t fallback, int64_t lo, int64_t hi);
  double number(std::string_view key);
  double number_or(std::string_view key, double fallback);
  std::string text_or(std::string_view key, std::string_view fallback);
  /// The elements of an array of integers or bools (or one scalar), each in [lo, hi]; empty when absent.
  std::vector<int64_t> integers(std::string_view key, int64_t lo, int64_t hi);
  /// One value for each of n layers from a scalar or an array; `fallback` (or a problem) when the key is absent.
  std::vector<int64_t> per_layer(std::string_view key, int64_t n, int64_t lo, int64_t hi,
                                 std::optional<int64_t> fallback = {});

  /// Notes "ARCHITECTURE.key ..." unless ok; returns ok.
  bool expect(bool ok, std::string_view key, std::string_view problem);
  void unsupported(std::string_view key, std::string_view problem);

  /// True while no problem was found: then values that depend on each other can be compared.
  bool ok() const { return problems_.empty(); }
  /// Throws one error with all problems, if there are any.
  void raise() const { problems_.raise(file_.name()); }

 private:
  /// The values of a key that exists, or nothing after a problem.
  std::optional<std::vector<int64_t>> array(std::string_view key, int64_t lo, int64_t hi);
  /// Notes the message of an error of the file, without the name of the file.
  void note(const Error& error);

  const gguf::File& file_;
  std::string architecture_;
  Problems problems_;
};

/// What every architecture has, and the per-layer values that only some files have.
struct CommonConfig {
  ModelConfig model;             ///< n_layers counts all blocks of the file
  std::vector<int64_t> n_heads;  ///< per block; 0 is possible only where `zero_heads` allows it
  std::vector<int64_t> n_kv_heads;
  std::vector<int64_t> n_ff;
};

/// Whether a block may say that it has no attention heads (recurrent layers in some files).
enum class ZeroHeads { refused, allowed };

/// Reads and checks the keys that all architectures share. Head counts that differ between attention layers are
/// refused; feed-forward lengths may differ.
CommonConfig read_common_config(ConfigReader& read, ZeroHeads zero_heads);

}  // namespace kz
