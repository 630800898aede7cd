#include "cpu/cpu_backend.h"

#include "core/blocks.h"
#include "core/error.h"
#include "cpu/backend_impl.h"
#include "cpu/kernel_tables.h"

namespace kz {

CpuBackend::CpuBackend(const CpuOptions& options)
    : table_(select_kernels(options.isa)),
      kernels_(*table_.kernels),
      q8_(options.activations == "q8"),
      cache_folder_(options.packed_cache),
      pool_(options.n_threads, options.cores) {
  if (!q8_ && options.activations != "f32") {
    throw Error(ErrorCode::bad_argument, "activations: found '" + options.activations + "', expected f32 or q8");
  }
}

bool CpuBackend::supports(DType dtype) const { return dtype_info(dtype).weights; }

Weight CpuBackend::import_weight(const WeightSource& source) {
  ImportContext context;
  return std::move(import_weights({&source, 1}, context).front());
}

Weight CpuBackend::weight_in_place(const WeightSource& source) const {
  const Tensor& t = source.tensor;
  if (!supports(t.dtype)) {
    throw Error(ErrorCode::unsupported, "tensor " + source.name + ": the cpu backend cannot use weights of type " +
                                            std::string(dtype_name(t.dtype)));
  }
  Weight w;
  w.name = source.name;
  w.data = t.data;
  w.dtype = t.dtype;
  w.cols = t.ne[0];
  w.rows = t.ne[1];
  w.row_bytes = row_bytes(t.dtype, t.ne[0]);
  w.arithmetic = source.arithmetic;
  return w;
}

std::vector<Weight> CpuBackend::import_weights(std::span<const WeightSource> sources, ImportContext& context) {
  std::vector<Weight> weights;
  for (const WeightSource& source : sources) weights.push_back(weight_in_place(source));
  const PackedPlan plan = plan_packing(sources, [this](const WeightSource& source) { return keeping(source); });
  const std::byte* block = packed_.load(sources, plan, pool_, context, cache_folder_);
  std::vector<bool> in_place(sources.size(), true);
  for (const PackedItem& item : plan.items) {
    Weight& w = weights[item.source];
    w.data = block + item.place;
    if (item.strips) w.layout = WeightLayout::packed;
    in_place[item.source] = false;
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i].kind = products_.find(weights[i]);
    if (!in_place[i] || sources[i].file == nullptr) continue;
    sources[i].file->will_need(sources[i].offset, static_cast<uint64_t>(weights[i].rows * weights[i].row_bytes));
  }
  return weights;
}

PackedBytes CpuBackend::plan_weights(std::span<const WeightSource> sources) const {
  const PackedPlan plan = plan_packing(sources, [this](const WeightSource& source) { return keeping(source); });
  return {plan.block_bytes, 0, plan.file_bytes};
}

Keeping CpuBackend::keeping(const WeightSource& source) const {
  if (!q8_) return Keeping::in_place;
  const Tensor& t = source.tensor;
  const bool has_product = table_.strips->knows(static_cast<int32_t>(t.dtype));
  if (has_product && source.arithmetic == Arithmetic::automatic) return Keeping::strips;
  // A small rest beside packed weights: a copy in their block is counted once, while its pages in the mapping would
  // bring their neighbours along, which lie there packed already. A large one stays where the kernel may drop it.
  constexpr int64_t kSmallBytes = 4 << 20;
  const bool is_small = t.ne[1] * row_bytes(t.dtype, t.ne[0]) <= kSmallBytes;
  return is_small && source.file != nullptr ? Keeping::copied : Keeping::in_place;
}

int64_t CpuBackend::workspace_bytes(const WorkLimits& limits) const {
  return Workspace::size_bytes(limits, pool_.size(), q8_);
}

void CpuBackend::reserve(const WorkLimits& limits) { workspace_.reserve(limits, pool_.size(), q8_); }

void CpuBackend::dequantise(DType dtype, const std::byte* blocks, float* out, int64_t n) const {
  if (const DequantiseKernel kernel = kernels_.dequantise(static_cast<int32_t>(dtype))) {
    kernel(blocks, out, n);
  } else {
    dequantise_row(dtype, blocks, out, n);
  }
}

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) { return std::make_unique<CpuBackend>(options); }

}  // namespace kz
