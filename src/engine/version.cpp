// Which build this is.
#include <kazeia/engine.h>

namespace kz {

std::string version() { return KZ_VERSION " (" KZ_COMMIT ")"; }

}  // namespace kz
