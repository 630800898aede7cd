// What an architecture is to the engine: a configuration, bound weights and one forward pass.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "gguf/file.h"

namespace kz {

class Binder;

/// Small F32 tensors that the verbs read directly (norms, biases, convolution taps). Views into it stay valid when
/// it grows or is moved.
using FloatStore = std::deque<std::vector<float>>;

/// The numbers that every architecture has (what only one has lives in its file).
struct ModelConfig {
  std::string architecture;
  std::string name;        ///< general.name, may be empty
  int64_t n_layers = 0;    ///< trunk layers (without MTP blocks)
  int64_t n_embd = 0;      ///< d
  int64_t n_ff = 0;        ///< F, the largest of all layers
  int64_t n_heads = 0;     ///< H
  int64_t n_kv_heads = 0;  ///< K
  int64_t key_dim = 0;     ///< D of queries and keys
  int64_t value_dim = 0;   ///< D of values
  int64_t n_vocab = 0;     ///< V
  int64_t n_ctx_train = 0;
  float norm_eps = 0;
  bool tied = false;  ///< the head is the embedding table
};

/// A model is made in two steps: the constructor reads and checks the configuration only (inspect stops here);
/// bind() checks every tensor and imports the weights. Immutable afterwards.
class Model {
 public:
  virtual ~Model() = default;

  const ModelConfig& config() const { return config_; }
  virtual StateLayout state_layout() const = 0;
  /// For forwards of the token form; a caller that wants DeltaForm::chunked sets delta.form.
  virtual WorkLimits work_limits(int64_t max_rows, int64_t n_positions) const = 0;
  /// Bytes that forward() takes from its Scratch for a batch of that size.
  virtual int64_t scratch_bytes(int64_t max_rows, int64_t max_logit_rows) const = 0;
  /// One line per weight: name, shape, where it goes. The binder reports all problems at once.
  virtual void bind(Binder& binder) = 0;
  /// Computes all rows; logits {V, rows.logit_rows.size()}. States must have begun the rows (State::begin); nothing
  /// is committed here. Allocates nothing.
  virtual void forward(Backend& op, const Rows& rows, Scratch& scratch, Tensor logits) const = 0;
  /// Facts a user should know ("MTP block present: not used yet").
  const std::vector<std::string>& notes() const { return notes_; }
  /// Bytes of the norms, biases and other small tensors that the model holds itself.
  int64_t float_bytes() const;

 protected:
  friend void bind_model(Model& model, const gguf::File& file, Backend* backend, ImportContext& context);
  friend PackedBytes plan_model(Model& model, const gguf::File& file, Backend& backend);

  ModelConfig config_;
  FloatStore floats_;
  std::vector<std::string> notes_;
};

/// Reads the configuration of a file. Throws Error(unsupported) that names the architecture and the known ones, or
/// Error(bad_file) with every problem of the configuration.
std::unique_ptr<Model> read_model(const gguf::File& file);

/// Binds all tensors of `file` to `model`: checks names, types and shapes, imports the weights into `backend`.
/// With backend == nullptr it only checks. Throws one error that lists every problem: Error(bad_file), or
/// Error(unsupported) when all that is wrong is what this engine does not do (a block type, for instance).
void bind_model(Model& model, const gguf::File& file, Backend* backend, ImportContext& context);
void bind_model(Model& model, const gguf::File& file, Backend* backend);

/// Checks likewise and reads the small tensors, but no weight: float_bytes() is right afterwards, the model is of no
/// other use. Returns what the backend would keep.
PackedBytes plan_model(Model& model, const gguf::File& file, Backend& backend);

/// Names of the known architectures, sorted.
std::vector<std::string_view> known_architectures();

}  // namespace kz
