// The verbs that a model file speaks. One reference implementation (reference.cpp), one fast per device.
//
// Rows are tokens of any session: every verb sees all rows of a batch; verbs that need history (append, attention,
// causal_conv_silu, delta_rule) walk the spans. Activations are F32. A verb never allocates.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/state.h"
#include "core/file.h"
#include "core/tensor.h"

namespace kz {

class ThreadPool;

/// Consecutive tokens of one sequence inside a batch.
struct Span {
  State* state = nullptr;
  int64_t position = 0;   ///< position of the first row in its sequence (== state->position())
  int64_t first_row = 0;  ///< where its rows start in the batch
  int64_t n_rows = 0;
};

/// How delta_rule walks a span. Both compute the same function; token is the one whose bits decode has.
enum class DeltaForm { token, chunked };

/// A batch: one row per token. The arrays belong to the caller.
struct Rows {
  std::span<const Span> spans;
  std::span<const int32_t> tokens;          ///< one id per row
  std::span<const int32_t> logit_rows;      ///< ascending rows whose logits are wanted
  DeltaForm delta_form = DeltaForm::token;  ///< the model hands it to delta_rule (DeltaShape::form)
  int64_t size() const { return static_cast<int64_t>(tokens.size()); }
};

/// How a product computes (docs/decisions/arithmetic.md). Today's backends compute everything in f32; the class is
/// recorded because some weights must stay there when packed integer kernels come.
enum class Arithmetic {
  automatic,  ///< what the backend does best for the type
  f32,        ///< float activations whatever the weight type: ssm_alpha and ssm_beta
};

/// Where the bytes of an imported weight lie and in what order.
enum class WeightLayout {
  file,    ///< rows one after the other, as in the file (and in its mapping)
  packed,  ///< the backend's own order, in its own memory; the file's bytes are not needed any more
};

/// The bytes of a weight as they lie in the (mapped) file. Importing decides whether they are used in place.
struct WeightSource {
  std::string name;
  Tensor tensor;  ///< {cols, rows} of any loadable type
  Arithmetic arithmetic = Arithmetic::automatic;
  /// The file that holds the same bytes at `offset`, to be read past the mapping; null: there is only `tensor`.
  const MappedFile* file = nullptr;
  uint64_t offset = 0;
};

/// A weight matrix as its backend keeps it: y = W x maps cols inputs to rows outputs. A view; the backend (or the
/// mapped file) owns the bytes.
struct Weight {
  std::string name;
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
  int64_t cols = 0;
  int64_t rows = 0;
  int64_t row_bytes = 0;  ///< of a row as a file keeps it
  Arithmetic arithmetic = Arithmetic::automatic;
  WeightLayout layout = WeightLayout::file;
  int32_t kind = 0;  ///< where the backend counts its products
  bool empty() const { return data == nullptr; }
};

/// One product of linear_many: out = weight x (+ bias).
struct Product {
  const Weight* weight = nullptr;
  Tensor out;   ///< {weight->rows, rows}
  Tensor bias;  ///< {weight->rows} or empty
};

/// Rotary embedding: which features turn, and how fast. Built once per model (model/rope.h).
struct RopeTable {
  bool adjacent = false;          ///< llama: pairs (2i, 2i+1); otherwise (i, i + n_rot/2)
  std::vector<double> frequency;  ///< radians per position of each of the n_rot/2 pairs
  double magnitude = 1.0;         ///< multiplies cos and sin (YaRN)
  int64_t n_rot() const { return 2 * static_cast<int64_t>(frequency.size()); }
};

struct DeltaShape {
  int64_t n_key_heads = 0;
  int64_t n_value_heads = 0;  ///< key head of value head h is h mod n_key_heads (GGUF's tiled order)
  int64_t state_size = 0;     ///< S
  DeltaForm form = DeltaForm::token;
};

/// Upper bounds that a backend sizes its work memory by.
struct WorkLimits {
  int64_t rows = 0;       ///< rows of one forward
  int64_t heads = 0;      ///< query heads
  int64_t head_dim = 0;   ///< largest of key and value head dim
  int64_t positions = 0;  ///< context
  int64_t features = 0;   ///< longest row of any weight
  DeltaShape delta;
};

/// One line of the placement report: a verb, the kernel that ran it, where, how often.
struct KernelUse {
  std::string verb;
  std::string kernel;
  std::string device;
  int64_t calls = 0;
  std::string weights{};  ///< of products: what the weights are called in every layer ("ffn_gate")
  int64_t bytes = 0;      ///< of weights, KV rows and recurrent states that the calls had to read (states: and write)
  double seconds = 0;     ///< of the timed calls; products that run together share theirs by bytes
  int64_t n_timed = 0;    ///< calls made while time_verbs() was on
  int64_t multiply_adds = 0;  ///< of products
};

/// Bytes of the weights that a backend keeps itself, as strips or copied: all of them, those of a file that the
/// kernel may drop (packed cache), and those of the model file, which are not needed any more.
struct PackedBytes {
  int64_t own = 0;
  int64_t in_cache = 0;
  int64_t in_file = 0;
};

/// What goes with the weights of one model when they are imported together.
struct ImportContext {
  std::function<void(double share)> progress;  ///< 0..1 from the calling thread; what it throws ends the import
  std::string content_key;                     ///< names the content of the files; empty: nobody knows
  std::string stamp;                           ///< what the system says of the files; changes when they are written to
  std::vector<std::string> notes;              ///< what a user should know of it, one line each
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;     ///< "reference", "cpu"
  virtual std::string_view kernels() const = 0;  ///< the kernel table in use: "avx2", "scalar", ...
  virtual int n_threads() const = 0;
  /// The team that runs the verbs, null where there is none.
  virtual ThreadPool* threads() { return nullptr; }

  // --- memory ------------------------------------------------------------------------------------------------
  /// True when weights of this type can be imported.
  virtual bool supports(DType dtype) const = 0;
  /// Throws Error(unsupported) that names the weight and its type.
  virtual Weight import_weight(const WeightSource& source) = 0;
  /// All weights of a model, in the order of `sources`. Throws what import_weight() throws, Error(io) for a file that
  /// cannot be read any more, and what progress throws.
  virtual std::vector<Weight> import_weights(std::span<const WeightSource> sources, ImportContext& context);
  /// What packed_bytes() would say of them, without importing.
  virtual PackedBytes plan_weights(std::span<const WeightSource>) const { return {}; }
  /// What the weights with layout `packed` take, here and in the files that they came from.
  virtual PackedBytes packed_bytes() const { return {}; }
  /// Bytes of own work memory that reserve(limits) would hold, without allocating.
  virtual int64_t workspace_bytes(const WorkLimits& limits) const = 0;
  /// Makes room for forwards within the limits; called when a session opens, never during a forward.
  virtual void reserve(const WorkLimits& limits) = 0;
  /// Which kernels ran where since the start.
  virtual std::vector<KernelUse> kernel_uses() const = 0;
  /// Whether calls are timed from now on (at first they are not: reading the clock shows in small models).
  virtual void time_verbs(bool) {}

  // --- verbs; shapes are {ne0, ne1(, ne2)}, R = rows of the batch --------------------------------------------
  /// out{d, R} = row token[r] of table {d, V}. Token ids are checked by the caller.
  virtual void embed(const Weight& table, const Rows& rows, Tensor out) = 0;

  /// out = x / sqrt(mean(x^2) + eps) * w over ne[0]; x {d, R} or {D, heads, R}; w {d}; out may be x.
  virtual void rms_norm(Tensor x, Tensor w, float eps, Tensor out) = 0;

  /// Every product's out{rows, R} = W x (+ bias), all from one activation x {cols, R}.
  virtual void linear_many(Tensor x, std::span<const Product> products) = 0;
  void linear(Tensor x, const Weight& w, Tensor out, Tensor bias = {}) {
    const Product product{&w, out, bias};
    linear_many(x, {&product, 1});
  }

  /// angles{n_rot, R}: cos of every pair, then sin, of each row's position, times the magnitude. Once per forward.
  virtual void rope_angles(const RopeTable& rope, const Rows& rows, Tensor angles) = 0;
  /// Rotates the first n_rot features of every head of x {D, heads, R} in place.
  virtual void rope(Tensor x, const RopeTable& rope, Tensor angles) = 0;

  /// Stores keys {Dk, kv heads, R} and values {Dv, kv heads, R} of attention layer `layer` at their positions.
  virtual void append(Tensor k, Tensor v, int64_t layer, const Rows& rows) = 0;
  /// Causal softmax attention of q {Dk, H, R} over the rows stored so far (their own included);
  /// KV head of query head h is h / (H / kv heads); scores times `scale`. out {Dv, H, R}.
  virtual void attention(Tensor q, float scale, int64_t layer, const Rows& rows, Tensor out) = 0;

  /// x = x * sigmoid(gate), elementwise; x and gate of one shape ({D, heads, R} or {d, R}).
  virtual void sigmoid_gate(Tensor x, Tensor gate) = 0;

  /// Depthwise causal convolution with kernel w {kernel, C} (last tap multiplies the newest input), then SiLU, in
  /// place on x {C, R}. Each state keeps its last kernel - 1 inputs of delta layer `layer`.
  virtual void causal_conv_silu(Tensor x, Tensor w, int64_t layer, const Rows& rows) = 0;

  /// alpha{nv, R} = a * softplus(alpha + dt_bias): the logarithm g <= 0 of the state's decay; a, dt_bias {nv}.
  virtual void decay(Tensor alpha, Tensor dt_bias, Tensor a) = 0;

  /// The gated delta rule. q, k {S, nk, R}; v, out {S, nv, R}; g, beta {nv, R} (beta before its sigmoid):
  ///   q, k <- x / sqrt(sum(x^2) + 1e-6);  M <- e^g M;  M <- M + sigmoid(beta) (v - M k) k^T;  out = M q / sqrt(S).
  virtual void delta_rule(Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, const DeltaShape& shape, int64_t layer,
                          const Rows& rows, Tensor out) = 0;

  /// x = rms_norm(x; w, eps) * SiLU(z), per head; x, z {S, nv, R}; w {S}.
  virtual void norm_silu_gate(Tensor x, Tensor w, float eps, Tensor z) = 0;

  /// out = SiLU(gate) * up, elementwise {F, R}; out may be gate.
  virtual void swiglu(Tensor gate, Tensor up, Tensor out) = 0;

  /// x += y, elementwise {d, R}.
  virtual void add(Tensor x, Tensor y) = 0;

  /// logits{V, n} = head * rms_norm(x; norm, eps) for the n logit_rows of x {d, R}. Rows of `normed` {d, n} hold
  /// the normed rows afterwards.
  virtual void finish(Tensor x, Tensor norm, float eps, const Weight& head, const Rows& rows, Tensor normed,
                      Tensor logits) = 0;
};

/// Plain loops, double accumulation, any block type; the definition that every other backend is tested against.
std::unique_ptr<Backend> make_reference_backend();

}  // namespace kz
