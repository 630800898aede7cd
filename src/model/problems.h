// Every problem of a file in one error.
#pragma once

#include <kazeia/error.h>

#include <span>
#include <string>
#include <vector>

namespace kz {

/// "a, b, c" (fmt::join makes g++ 12 warn of an overflow that is not there).
std::string joined(std::span<const std::string> parts, const char* separator = ", ");

/// Collects what is wrong with a file, so that its user sees all of it at once.
class Problems {
 public:
  /// Most problems that the error spells out; the rest is counted.
  static constexpr size_t kMaxShown = 20;

  void add(std::string text) { add(ErrorCode::bad_file, std::move(text)); }
  /// The file is well-formed, but this engine does not do what it asks for.
  void add_unsupported(std::string text) { add(ErrorCode::unsupported, std::move(text)); }

  bool empty() const { return texts_.empty(); }
  size_t count() const { return texts_.size(); }

  /// Throws one Error "NAME: first; second; ... and 7 more problems" unless empty. Its code is bad_file, or
  /// unsupported when nothing else is wrong.
  void raise(const std::string& file_name) const;

 private:
  void add(ErrorCode code, std::string text);

  std::vector<std::string> texts_;
  bool all_unsupported_ = true;
};

}  // namespace kz
