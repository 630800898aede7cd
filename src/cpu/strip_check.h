// Whether products on strips of one table have the bits of the scalar table: asked before a table is chosen whose unit
// software could get wrong (AMX on a virtual machine, say).
#pragma once

#include "cpu/strip_kernels.h"

namespace kz {

/// Multiplies random strips of two types with a few more rows than a register tile has. A few milliseconds.
bool equals_scalar(const StripKernels& kernels);

}  // namespace kz
