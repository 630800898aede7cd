// A file that appears whole or not at all.
#pragma once

#include <cstdio>
#include <span>
#include <string>

namespace kz::cli {

/// Writes beside `path` and takes its place in commit(); destroyed before that, it leaves `path` as it was.
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
  std::string path_, temporary_;
  std::FILE* file_ = nullptr;
};

}  // namespace kz::cli
