// kz::Error and KZ_CHECK. See docs/decisions/errors.md.
#pragma once

#include <kazeia/error.h>

namespace kz {

/// Throws Error(internal) that names the place of a broken promise of our own code.
[[noreturn]] void check_failed(const char* file, int line, const char* condition);

}  // namespace kz

/// For our own bugs only: never for anything that a file, a flag or a request contains.
#define KZ_CHECK(condition)                                               \
  do {                                                                    \
    if (!(condition)) ::kz::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)
