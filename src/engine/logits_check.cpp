#include "engine/logits_check.h"

#include <fmt/format.h>
#include <kazeia/error.h>

#include <bit>
#include <cstdint>

namespace kz {
namespace {

constexpr uint32_t kExponent = 0x7f800000u;

}  // namespace

void check_logits(std::span<const float> logits, std::string_view file, long long position) {
  // On bits, so that the loop has no branch.
  uint32_t not_finite = 0;
  uint32_t different = 0;
  const uint32_t first = logits.empty() ? 0 : std::bit_cast<uint32_t>(logits[0]);
  for (const float logit : logits) {
    const uint32_t bits = std::bit_cast<uint32_t>(logit);
    not_finite |= static_cast<uint32_t>((bits & kExponent) == kExponent);
    different |= bits ^ first;
  }
  if (not_finite != 0) {
    size_t id = 0;
    while ((std::bit_cast<uint32_t>(logits[id]) & kExponent) != kExponent) ++id;
    throw Error(ErrorCode::bad_file,
                fmt::format("{}: the logit of token {} at position {} is {}, expected a finite number "
                            "(weights damaged, or out of range for this arithmetic)",
                            file, id, position, logits[id]));
  }
  if (different == 0 && logits.size() > 1) {
    throw Error(ErrorCode::bad_file, fmt::format("{}: all {} logits at position {} are {}, expected different numbers "
                                                 "(weights damaged, a norm of zeros for instance)",
                                                 file, logits.size(), position, logits[0]));
  }
}

}  // namespace kz
