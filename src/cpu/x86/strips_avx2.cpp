// Products on strips with AVX2 and FMA.
#ifndef __AVX2__
#error "compile this file with -mavx2 -mfma -mf16c"
#endif
#include "cpu/x86/strips_avx2.h"

namespace kz {

extern const StripKernels kStripsAvx2;
constexpr StripKernels kStripsAvx2 = {"avx2", knows_strip_type, product_of_type<Avx2>, quantise_strip_row};

}  // namespace kz
