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
      pool_(options.n_threads, options.cores) {
  if (!q8_ && options.activations != "f32") {
    throw Error(ErrorCode::bad_argument, "activations: found '" + options.activations + "', expected f32 or q8");
  }
}

bool CpuBackend::supports(DType dtype) const { return dtype_info(dtype).weights; }

Weight CpuBackend::import_weight(const WeightSource& source) {
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
  if (packs(source)) packed_.pack(w, pool_);
  w.kind = products_.find(w);
  return w;
}

bool CpuBackend::packs(const WeightSource& source) const {
  return q8_ && source.arithmetic == Arithmetic::automatic &&
         table_.strips->knows(static_cast<int32_t>(source.tensor.dtype));
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
