// Kernel table scalar: the baseline of the target, whatever it is. The compiler lowers the vectors to what there is.
#include "cpu/kernel_template.h"

namespace kz {
namespace {

struct Shape {
  static constexpr int kWidth = 4;
  static constexpr int kTileWeights = 2;
  static constexpr int kTileRows = 1;
  static constexpr int kSumRows = 2;
  static constexpr int kSumVectors = 1;
  static constexpr int kDeltaRows = 1;
  static constexpr int kStoredQueries = 1;
  static constexpr int kStoredKeys = 2;
  static constexpr int kStoredBlocks = 1;
};

}  // namespace

extern const Kernels kKernelsScalar;
constexpr Kernels kKernelsScalar = make_kernels<Shape>("scalar");

}  // namespace kz
