// The CPU backend's class; its verbs are spread over the files of this folder by subject.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "core/thread_pool.h"
#include "cpu/cpu_backend.h"
#include "cpu/kernel_tables.h"
#include "cpu/packed_weights.h"
#include "cpu/verb_times.h"
#include "cpu/workspace.h"

namespace kz {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const CpuOptions& options);

  std::string_view name() const override { return "cpu"; }
  std::string_view kernels() const override { return table_.name; }
  int n_threads() const override { return pool_.size(); }
  ThreadPool* threads() override { return &pool_; }

  bool supports(DType dtype) const override;
  Weight import_weight(const WeightSource& source) override;
  std::vector<Weight> import_weights(std::span<const WeightSource> sources, ImportContext& context) override;
  PackedBytes plan_weights(std::span<const WeightSource> sources) const override;
  PackedBytes packed_bytes() const override { return packed_.bytes(); }
  int64_t workspace_bytes(const WorkLimits& limits) const override;
  void reserve(const WorkLimits& limits) override;
  std::vector<KernelUse> kernel_uses() const override;  // verb_times.cpp
  void time_verbs(bool on) override { times_verbs_ = on; }

  // linear.cpp
  void embed(const Weight& table, const Rows& rows, Tensor out) override;
  void linear_many(Tensor x, std::span<const Product> products) override;
  void finish(Tensor x, Tensor norm, float eps, const Weight& head, const Rows& rows, Tensor normed,
              Tensor logits) override;
  // rows.cpp
  void rms_norm(Tensor x, Tensor w, float eps, Tensor out) override;
  void rope_angles(const RopeTable& rope, const Rows& rows, Tensor angles) override;
  void rope(Tensor x, const RopeTable& rope, Tensor angles) override;
  void sigmoid_gate(Tensor x, Tensor gate) override;
  void decay(Tensor alpha, Tensor dt_bias, Tensor a) override;
  void norm_silu_gate(Tensor x, Tensor w, float eps, Tensor z) override;
  void swiglu(Tensor gate, Tensor up, Tensor out) override;
  void add(Tensor x, Tensor y) override;
  // attention.cpp
  void append(Tensor k, Tensor v, int64_t layer, const Rows& rows) override;
  void attention(Tensor q, float scale, int64_t layer, const Rows& rows, Tensor out) override;
  // recurrent.cpp
  void causal_conv_silu(Tensor x, Tensor w, int64_t layer, const Rows& rows) override;
  void delta_rule(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, const DeltaShape& shape, int64_t layer,
                  const Rows& rows, Tensor out) override;

 private:
  enum Verb : size_t {
    kEmbed,
    kRmsNorm,
    kRopeAngles,
    kRope,
    kAppend,
    kAttention,
    kSigmoidGate,
    kCausalConvSilu,
    kDecay,
    kDeltaToken,
    kDeltaChunked,
    kNormSiluGate,
    kSwiglu,
    kAdd,
    kFinish,
    kVerbs
  };

  /// Counts a call, and times it until the end of the scope that keeps the result.
  VerbTimer count(Verb verb, int64_t bytes = 0) { return VerbTimer(verbs_[verb], bytes, times_verbs_); }

  /// Calls body(i, j) for every contiguous piece x.f32(i, j) of an activation, shared out to the workers.
  template <class Body>
  void for_pieces(const Tensor& x, Body body) {
    constexpr int64_t kGrainFloats = 16384;  // a few microseconds: waking a thread for less does not pay
    const int64_t inner = x.ne[1], grain = std::max<int64_t>(1, kGrainFloats / std::max<int64_t>(x.ne[0], 1));
    pool_.parallel_for(inner * x.ne[2], grain, [&](int64_t begin, int64_t end, int) {
      for (int64_t p = begin; p < end; ++p) body(p % inner, p / inner);
    });
  }

  void dequantise(DType dtype, const std::byte* blocks, float* out, int64_t n) const;
  void norm_row(const float* x, const float* w, float eps, float* out, int64_t n) const;
  struct Pieces;
  Keeping keeping(const WeightSource& source) const;
  Weight weight_in_place(const WeightSource& source) const;
  void embed_packed(const Weight& table, int64_t token, float* out) const;
  void multiply(Tensor x, std::span<const Product> products);
  bool multiply_stored(const Tensor& x, const Product& product, int64_t first, int64_t n) const;
  void multiply_panel(const Tensor& x, const Product& product, int64_t first, int64_t n, const PanelWork& work) const;
  // strip_linear.cpp
  Q8Batch quantise_rows(const Tensor& x);
  void multiply_strips(const Q8Batch& batch, const Product& product, int64_t first, int64_t n, float* part) const;
  void multiply_group(const Q8Rows& x, const Product& product, int64_t first, int64_t n, float* part) const;

  const KernelTable& table_;
  const Kernels& kernels_;
  const bool q8_;  // activations of products on packed weights are 8-bit codes
  const std::string cache_folder_;
  ThreadPool pool_;
  Workspace workspace_;
  PackedWeights packed_;
  bool times_verbs_ = false;
  std::array<VerbUse, kVerbs> verbs_{};
  ProductUses products_;
};

}  // namespace kz
