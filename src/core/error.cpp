#include "core/error.h"

namespace kz {

void check_failed(const char* file, int line, const char* condition) {
  throw Error(ErrorCode::internal, std::string("internal error at ") + file + ":" + std::to_string(line) +
                                       ": expected " + condition + " (this is a bug, please report it)");
}

}  // namespace kz
