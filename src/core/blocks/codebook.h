// The value tables of the 4-bit types that are not evenly spaced.
#pragma once

namespace kz::blocks {

/// IQ4_NL and IQ4_XS: value of each 4-bit code.
inline constexpr float kNonLinear4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/// MXFP4: twice the E2M1 value of each 4-bit code. Code 8 (minus zero) decodes to plus zero times the scale.
inline constexpr float kE2m1Doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace kz::blocks
