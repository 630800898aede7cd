// What the system says about this process, and the name of a model's content.
#include <fcntl.h>
#include <kazeia/bench.h>
#include <unistd.h>

#include "core/system.h"
#include "engine/engine_core.h"
#include "gguf/identity.h"

namespace kz {
ProcessMemory process_memory() {
  const std::string status = system_text("/proc/self/status");
  return {system_bytes(status, "VmHWM"), system_bytes(status, "RssAnon"), system_bytes(status, "RssFile")};
}

bool reset_peak_memory() {
  const int file = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool done = ::write(file, "5", 1) == 1;
  ::close(file);
  return done;
}

std::string model_fingerprint(const Engine& engine) {
  constexpr size_t kDigits = 16;
  return gguf::identify(engine.impl_->core->file).content.substr(0, kDigits);
}

}  // namespace kz
