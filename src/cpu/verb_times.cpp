#include "cpu/verb_times.h"

#include <string_view>

#include "cpu/backend_impl.h"

namespace kz {
namespace {

int64_t weight_bytes(const Weight& weight) { return weight.rows * weight.row_bytes; }

/// "blk.7.ffn_gate.weight" -> "ffn_gate"; "output.weight" -> "output".
std::string_view kind_name(std::string_view name) {
  if (name.starts_with("blk.")) {
    const size_t dot = name.find('.', 4);
    if (dot != std::string_view::npos) name.remove_prefix(dot + 1);
  }
  const size_t end = name.rfind(".weight");
  return end == std::string_view::npos ? name : name.substr(0, end);
}

struct VerbName {
  const char *verb, *kernel;
};
// In the order of CpuBackend::Verb.
constexpr VerbName kVerbNames[] = {{"embed", "f32 rows"},
                                   {"rms_norm", "f32"},
                                   {"rope_angles", "f64"},
                                   {"rope", "f32"},
                                   {"append", "f32 rows"},
                                   {"attention", "f32 blocks"},
                                   {"sigmoid_gate", "f32"},
                                   {"causal_conv_silu", "f32"},
                                   {"decay", "f64"},
                                   {"delta_rule", "f32 tokens"},
                                   {"delta_rule", "f32 chunks"},
                                   {"norm_silu_gate", "f32"},
                                   {"swiglu", "f32"},
                                   {"add", "f32"},
                                   {"finish", "f32 norm"}};

KernelUse report(const char* verb, std::string kernel, std::string weights, const VerbUse& use) {
  return {verb,      std::move(kernel), "CPU",       use.calls,        std::move(weights),
          use.bytes, use.seconds,       use.n_timed, use.multiply_adds};
}

}  // namespace

int32_t ProductUses::find(const Weight& weight) {
  const std::string_view name = kind_name(weight.name);
  for (size_t i = 1; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.weights == name && entry.dtype == weight.dtype && entry.layout == weight.layout) {
      return static_cast<int32_t>(i);
    }
  }
  entries_.push_back({std::string(name), weight.dtype, weight.layout, {}});
  return static_cast<int32_t>(entries_.size() - 1);
}

ProductUses::Timer::Timer(ProductUses& uses, std::span<const Product> products, bool timed)
    : uses_(uses), products_(products), timed_(timed) {
  for (const Product& product : products) {
    VerbUse& use = uses.use_of(*product.weight);
    ++use.calls;
    use.bytes += weight_bytes(*product.weight);
    use.multiply_adds += product.weight->rows * product.weight->cols * product.out.ne[1];
  }
  if (timed) start_ = VerbTimer::Clock::now();
}

ProductUses::Timer::~Timer() {
  if (!timed_) return;
  const double seconds = std::chrono::duration<double>(VerbTimer::Clock::now() - start_).count();
  int64_t total_bytes = 0;
  for (const Product& product : products_) total_bytes += weight_bytes(*product.weight);
  for (const Product& product : products_) {
    VerbUse& use = uses_.use_of(*product.weight);
    use.seconds += seconds * static_cast<double>(weight_bytes(*product.weight)) / static_cast<double>(total_bytes);
    ++use.n_timed;
  }
}

int64_t kv_bytes(const Rows& rows, int64_t layer) {
  int64_t bytes = 0;
  for (const Span& span : rows.spans) {
    const KvPool& kv = span.state->pool();
    const int64_t position_bytes = kv.layout(layer).n_kv_heads * (kv.key_row_bytes(layer) + kv.value_row_bytes(layer));
    bytes += (span.position + span.n_rows) * position_bytes;
  }
  return bytes;
}

int64_t state_bytes(const Rows& rows, const DeltaShape& shape) {
  const int64_t one_state = shape.n_value_heads * shape.state_size * shape.state_size * 4;
  return 2 * one_state * static_cast<int64_t>(rows.spans.size());
}

std::vector<KernelUse> CpuBackend::kernel_uses() const {
  static_assert(std::size(kVerbNames) == kVerbs);
  const std::string table = std::string(" ").append(kernels());
  std::vector<KernelUse> uses;
  for (const ProductUses::Entry& entry : products_.entries()) {
    if (entry.use.calls == 0) continue;
    std::string kernel = entry.layout == WeightLayout::packed ? "q8 strips" : "f32 panel";
    kernel.append(table).append(", ").append(dtype_name(entry.dtype));
    uses.push_back(report("linear", std::move(kernel), entry.weights, entry.use));
  }
  for (size_t verb = 0; verb < kVerbs; ++verb) {
    if (verbs_[verb].calls == 0) continue;
    uses.push_back(report(kVerbNames[verb].verb, std::string(kVerbNames[verb].kernel).append(table), "", verbs_[verb]));
  }
  return uses;
}

}  // namespace kz
