#include "backend/reference.h"

#include <algorithm>

#include "core/blocks.h"
#include "core/error.h"

namespace kz {
namespace {

int64_t floats_for(const WorkLimits& limits) { return std::max(limits.features, limits.head_dim); }

int64_t doubles_for(const WorkLimits& limits) {
  return std::max(limits.positions + limits.head_dim, reference_delta_doubles(limits.delta));
}

}  // namespace

bool ReferenceBackend::supports(DType dtype) const { return dtype_info(dtype).weights; }

Weight ReferenceBackend::import_weight(const WeightSource& source) {
  const Tensor& t = source.tensor;
  if (!supports(t.dtype)) {
    throw Error(ErrorCode::unsupported,
                "tensor " + source.name + ": weights of type " + std::string(dtype_name(t.dtype)) + " cannot be read");
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

int64_t ReferenceBackend::workspace_bytes(const WorkLimits& limits) const {
  const int64_t per_worker = floats_for(limits) * static_cast<int64_t>(sizeof(float)) +
                             doubles_for(limits) * static_cast<int64_t>(sizeof(double));
  return per_worker * pool_.size();
}

void ReferenceBackend::reserve(const WorkLimits& limits) {
  floats_per_worker_ = std::max(floats_per_worker_, floats_for(limits));
  doubles_per_worker_ = std::max(doubles_per_worker_, doubles_for(limits));
  const auto n_workers = static_cast<size_t>(pool_.size());
  floats_.resize(static_cast<size_t>(floats_per_worker_) * n_workers);
  doubles_.resize(static_cast<size_t>(doubles_per_worker_) * n_workers);
}

float* ReferenceBackend::floats(int worker, int64_t n) {
  KZ_CHECK(n <= floats_per_worker_);  // reserve() was not called, or with limits below this forward
  return floats_.data() + worker * floats_per_worker_;
}

double* ReferenceBackend::doubles(int worker, int64_t n) {
  KZ_CHECK(n <= doubles_per_worker_);
  return doubles_.data() + worker * doubles_per_worker_;
}

std::vector<KernelUse> ReferenceBackend::kernel_uses() const {
  static constexpr std::array<std::string_view, kVerbs> kNames = {
      "embed",        "rms_norm",         "linear", "rope_angles", "rope",           "append", "attention",
      "sigmoid_gate", "causal_conv_silu", "decay",  "delta_rule",  "norm_silu_gate", "swiglu", "add",
      "finish"};
  std::vector<KernelUse> uses;
  for (size_t verb = 0; verb < kVerbs; ++verb) {
    if (calls_[verb] == 0) continue;
    uses.push_back({std::string(kNames[verb]), std::string(kernels()), std::string(name()), calls_[verb]});
  }
  return uses;
}

void ReferenceBackend::embed(const Weight& table, const Rows& rows, Tensor out) {
  count(kEmbed);
  for (int64_t r = 0; r < rows.size(); ++r) {
    const int64_t token = rows.tokens[static_cast<size_t>(r)];
    KZ_CHECK(token >= 0 && token < table.rows);
    dequantise_row(table.dtype, table.data + token * table.row_bytes, out.f32(r), table.cols);
  }
}

void ReferenceBackend::finish(Tensor x, Tensor norm, float eps, const Weight& head, const Rows& rows, Tensor normed,
                              Tensor logits) {
  count(kFinish);
  const int64_t n = static_cast<int64_t>(rows.logit_rows.size());
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = rows.logit_rows[static_cast<size_t>(i)];
    reference_rms_norm(rows_of(x, row, 1), norm, eps, rows_of(normed, i, 1));
  }
  if (n > 0) product(rows_of(normed, 0, n), head, rows_of(logits, 0, n), {});
}

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace kz
