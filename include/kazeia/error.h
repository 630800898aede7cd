// The one exception type of the engine.
#pragma once

#include <stdexcept>
#include <string>

namespace kz {

/// What kind of thing went wrong; decides exit codes and HTTP statuses, never shown alone.
enum class ErrorCode {
  bad_argument,   ///< a flag, parameter or request that cannot be honoured
  bad_file,       ///< a file whose content breaks its format
  unsupported,    ///< well-formed, but this engine does not do it (architecture, block type, ...)
  io,             ///< the operating system refused to open, read or write
  out_of_memory,  ///< an allocation or a stated memory limit
  cancelled,      ///< somebody asked to stop while nothing could be returned
  internal,       ///< a bug of ours
};

/// Ends an operation. Thrown on cold paths only; caught in main, the request handler, the generation loop, the
/// C ABI and fuzz targets. The text is one line and names file, tensor or field, found and expected.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace kz
