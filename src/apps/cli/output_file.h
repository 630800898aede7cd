// A file that appears whole or not at all.
#pragma once

#include "apps/cli/interrupt.h"

#include <cstdio>
#include <optional>
#include <span>
#include <string>

namespace kz::cli {

/// Throws Error(bad_argument) when `output` is one of `inputs`, under whatever name: writing it would destroy what is
/// being read.
void refuse_input_as_output(const std::string& output, std::span<const std::string> inputs);

/// Writes beside `path` and takes its place in commit(); destroyed before that, it leaves `path` as it was. A symbolic
/// link stays, and what it points to is replaced.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);  ///< throws Error(io)
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;
  std::string path_, target_, temporary_;
  std::FILE* file_ = nullptr;
  std::optional<RemovedAtExit> removed_at_exit_;
};

}  // namespace kz::cli
