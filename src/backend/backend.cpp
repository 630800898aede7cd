#include "backend/backend.h"

namespace kz {

std::vector<Weight> Backend::import_weights(std::span<const WeightSource> sources, ImportContext& context) {
  std::vector<Weight> weights;
  for (const WeightSource& source : sources) {
    weights.push_back(import_weight(source));
    if (source.file != nullptr) {
      source.file->will_need(source.offset, static_cast<uint64_t>(weights.back().rows * weights.back().row_bytes));
    }
    if (context.progress) context.progress(static_cast<double>(weights.size()) / static_cast<double>(sources.size()));
  }
  return weights;
}

}  // namespace kz
