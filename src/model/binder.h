// From the names of a file's tensors to the weights of a model.
//
// A model's bind() has one line per tensor: its name, its shape, where it goes. That line is also the validation.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "backend/backend.h"
#include "gguf/file.h"
#include "model/model.h"
#include "model/problems.h"

namespace kz {

/// What is known of a file while a model is bound to it.
class Binding {
 public:
  /// Without a backend, tensors are checked and nothing is read or imported.
  Binding(const gguf::File& file, Backend* backend) : file_(file), backend_(backend) {}

  /// Reports every problem as one Error; then imports the weights, in the order of the model's lines. Returns the
  /// floats that the model must keep and the notes for its user.
  void finish(std::string_view architecture, ImportContext& context, FloatStore& floats,
              std::vector<std::string>& notes);
  /// Reports problems likewise; then asks the backend what importing would take.
  PackedBytes plan(FloatStore& floats);

 private:
  friend class Binder;

  const gguf::TensorInfo* find(const std::string& name, std::initializer_list<int64_t> ne);
  void import(Weight& to, WeightSource source);
  Tensor import_floats(const gguf::TensorInfo& info);
  void refuse_scale_tensors();
  void note_ignored_blocks();
  void note_unknown_tensors(std::string_view architecture);

  const gguf::File& file_;
  Backend* backend_;
  Problems problems_;
  std::vector<std::string> notes_;
  std::unordered_set<std::string_view> known_;  // names that the model has asked for
  std::vector<WeightSource> sources_;           // imported when all tensors are right
  std::vector<Weight*> targets_;                // one for each
  FloatStore floats_;
};

/// The place in the file's names where a model is binding. Destinations must not move before bind_model() returns;
/// weights and floats are filled in at its end, when no tensor of the file had a problem.
class Binder {
 public:
  explicit Binder(Binding& binding, std::string prefix = {}) : binding_(binding), prefix_(std::move(prefix)) {}

  /// The tensors of block i: names below "blk.i.".
  Binder block(int64_t i) const { return Binder(binding_, prefix_ + "blk." + std::to_string(i) + '.'); }

  /// A weight matrix {cols, rows} of any type that the backend can import.
  void matrix(std::string_view name, int64_t cols, int64_t rows, Weight& to,
              Arithmetic arithmetic = Arithmetic::automatic) const;
  /// True if the file has it (right or wrong); otherwise `to` stays empty.
  bool optional_matrix(std::string_view name, int64_t cols, int64_t rows, Weight& to) const;

  /// Consecutive rows of one matrix that become a weight of their own.
  struct RowRange {
    int64_t rows;
    Weight& to;
  };
  /// Several matrices that the file keeps as one, one above the other.
  void stacked_matrices(std::string_view name, int64_t cols, std::initializer_list<RowRange> parts) const;

  /// A tensor {ne0} or {ne0, ne1} of F32, F16 or BF16, converted to F32 memory that the model owns.
  void floats(std::string_view name, std::initializer_list<int64_t> ne, Tensor& to) const;
  bool optional_floats(std::string_view name, std::initializer_list<int64_t> ne, Tensor& to) const;

  /// Consecutive values of one vector; several vectors that the file keeps as one.
  struct ValueRange {
    int64_t count;
    Tensor& to;
  };
  void stacked_floats(std::string_view name, std::initializer_list<ValueRange> parts) const;

  /// n positive values, read at once (they are part of the configuration); empty when absent or wrong.
  std::vector<double> optional_divisors(std::string_view name, int64_t n) const;

  bool has(std::string_view name) const;
  /// Some writers spell a name differently: the spelling that the file has, or the first.
  std::string_view spelled(std::string_view name, std::string_view other) const {
    return !has(name) && has(other) ? other : name;
  }
  /// Names with this beginning are known and left alone; returns how many there are.
  int64_t leave_alone(std::string_view beginning) const;
  void note(std::string text) const;

 private:
  std::string full(std::string_view name) const { return prefix_ + std::string(name); }

  Binding& binding_;
  std::string prefix_;
};

}  // namespace kz
