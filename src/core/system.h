// What Linux says of the machine and of this process, from the small texts of /proc and /sys.
#pragma once

#include <cstdint>
#include <string>

namespace kz {

/// A file of the system, empty when it cannot be read.
std::string system_text(const std::string& path);

/// The value of the first "name : value" line of such a text, empty when there is none.
std::string system_value(const std::string& text, const std::string& name);

/// A value in kB ("MemAvailable:  123 kB"), in bytes; 0 when there is none.
int64_t system_bytes(const std::string& text, const std::string& name);

/// Memory that the system could give away without swapping, by its own estimate (MemAvailable); 0 where it does not
/// say.
int64_t available_memory_bytes();

/// All memory of the machine; 0 where the system does not say.
int64_t machine_memory_bytes();

}  // namespace kz
