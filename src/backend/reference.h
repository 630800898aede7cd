// The reference backend: the definition of every verb. Plain loops over F32 activations; everything between two
// stored activations is computed in double, so its only roundings are those of the stores. See backend.h for the
// formulas and shapes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "core/thread_pool.h"

namespace kz {

class ReferenceBackend final : public Backend {
 public:
  ReferenceBackend() : pool_(0) {}

  std::string_view name() const override { return "reference"; }
  std::string_view kernels() const override { return "plain"; }
  int n_threads() const override { return pool_.size(); }

  bool supports(DType dtype) const override;
  Weight import_weight(const WeightSource& source) override;
  int64_t workspace_bytes(const WorkLimits& limits) const override;
  void reserve(const WorkLimits& limits) override;
  std::vector<KernelUse> kernel_uses() const override;

  void embed(const Weight& table, const Rows& rows, Tensor out) override;
  void rms_norm(Tensor x, Tensor w, float eps, Tensor out) override;
  void linear_many(Tensor x, std::span<const Product> products) override;
  void rope_angles(const RopeTable& rope, const Rows& rows, Tensor angles) override;
  void rope(Tensor x, const RopeTable& rope, Tensor angles) override;
  void append(Tensor k, Tensor v, int64_t layer, const Rows& rows) override;
  void attention(Tensor q, float scale, int64_t layer, const Rows& rows, Tensor out) override;
  void sigmoid_gate(Tensor x, Tensor gate) override;
  void causal_conv_silu(Tensor x, Tensor w, int64_t layer, const Rows& rows) override;
  void decay(Tensor alpha, Tensor dt_bias, Tensor a) override;
  void delta_rule(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, const DeltaShape& shape, int64_t layer,
                  const Rows& rows, Tensor out) override;
  void norm_silu_gate(Tensor x, Tensor w, float eps, Tensor z) override;
  void swiglu(Tensor gate, Tensor up, Tensor out) override;
  void add(Tensor x, Tensor y) override;
  void finish(Tensor x, Tensor norm, float eps, const Weight& head, const Rows& rows, Tensor normed,
              Tensor logits) override;

 private:
  enum Verb : size_t {
    kEmbed,
    kRmsNorm,
    kLinear,
    kRopeAngles,
    kRope,
    kAppend,
    kAttention,
    kSigmoidGate,
    kCausalConvSilu,
    kDecay,
    kDeltaRule,
    kNormSiluGate,
    kSwiglu,
    kAdd,
    kFinish,
    kVerbs
  };

  void count(Verb verb, size_t calls = 1) { calls_[verb] += static_cast<int64_t>(calls); }

  /// out{rows, R} = w x (+ bias), without counting.
  void product(Tensor x, const Weight& w, Tensor out, Tensor bias);

  /// Work memory of one worker, as reserve() sized it; throws Error(internal) beyond it.
  float* floats(int worker, int64_t n);
  double* doubles(int worker, int64_t n);

  ThreadPool pool_;
  std::array<int64_t, kVerbs> calls_{};
  int64_t floats_per_worker_ = 0;
  int64_t doubles_per_worker_ = 0;
  std::vector<float> floats_;
  std::vector<double> doubles_;
};

/// rms_norm without counting (reference_elementwise.cpp).
void reference_rms_norm(Tensor x, Tensor w, float eps, Tensor out);

/// Doubles that delta_rule needs per worker (reference_delta.cpp).
int64_t reference_delta_doubles(const DeltaShape& shape);

}  // namespace kz
