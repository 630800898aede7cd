// Products on strips with AVX-512 VNNI.
#ifndef __AVX512VNNI__
#error "compile this file with -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c"
#endif
#include "cpu/x86/strips_avx512.h"

namespace kz {

extern const StripKernels kStripsAvx512Vnni;
constexpr StripKernels kStripsAvx512Vnni = {"avx512vnni", knows_strip_type, product_of_type<Avx512Vnni>,
                                            quantise_strip_row_avx512};

}  // namespace kz
