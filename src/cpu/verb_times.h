// How often the backend's verbs ran, how long they took and how many bytes of the model they had to touch.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "backend/backend.h"

namespace kz {

struct VerbUse {
  int64_t calls = 0;
  int64_t bytes = 0;          ///< of weights, KV rows and states that those calls had to read (states: and write)
  double seconds = 0;         ///< of the calls that were timed
  int64_t n_timed = 0;        ///< those calls
  int64_t multiply_adds = 0;  ///< of products
};

/// Adds the seconds from its construction to its end to a use. Reading the clock twice costs about 50 ns, which is 1 %
/// of a decode step of a model with 135 M weights, so it is done on request only.
class [[nodiscard]] VerbTimer {
 public:
  using Clock = std::chrono::steady_clock;
  VerbTimer(VerbUse& use, int64_t bytes, bool timed) : use_(timed ? &use : nullptr) {
    ++use.calls;
    use.bytes += bytes;
    if (timed) start_ = Clock::now();
  }
  ~VerbTimer() {
    if (use_ == nullptr) return;
    use_->seconds += std::chrono::duration<double>(Clock::now() - start_).count();
    ++use_->n_timed;
  }
  VerbTimer(const VerbTimer&) = delete;
  VerbTimer& operator=(const VerbTimer&) = delete;

 private:
  VerbUse* use_;
  Clock::time_point start_;
};

/// Products of the weights that share a name in all layers ("ffn_gate"), a type and a place. Index 0 is for weights
/// that no import registered.
class ProductUses {
 public:
  struct Entry {
    std::string weights;
    DType dtype = DType::f32;
    WeightLayout layout = WeightLayout::file;
    VerbUse use;
  };

  /// The index to keep in Weight::kind.
  int32_t find(const Weight& weight);
  const std::deque<Entry>& entries() const { return entries_; }

  /// Counts products that run as one, and shares their time out by the bytes of their weights.
  class [[nodiscard]] Timer {
   public:
    Timer(ProductUses& uses, std::span<const Product> products, bool timed);
    ~Timer();
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    ProductUses& uses_;
    std::span<const Product> products_;
    bool timed_;
    VerbTimer::Clock::time_point start_;
  };

 private:
  VerbUse& use_of(const Weight& weight) { return entries_[static_cast<size_t>(weight.kind)].use; }
  std::deque<Entry> entries_{1};
};

/// KV rows that attention of layer `layer` has to read, each once per span.
int64_t kv_bytes(const Rows& rows, int64_t layer);
/// The states of one delta layer, read and written once per span.
int64_t state_bytes(const Rows& rows, const DeltaShape& shape);

}  // namespace kz
