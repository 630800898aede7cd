#include "model/binder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "core/blocks.h"
#include "core/error.h"
#include "gguf/printable.h"

namespace kz {
namespace {

/// Unknown tensors that the note spells out.
constexpr size_t kMaxNamedTensors = 3;
/// Ignored blocks that the note spells out.
constexpr size_t kMaxNamedBlocks = 8;

std::string shape_text(std::span<const int64_t> ne) {
  std::vector<std::string> sizes;
  for (const int64_t n : ne) sizes.push_back(std::to_string(n));
  return '{' + joined(sizes) + '}';
}

/// The number of a name "blk.N.", or -1.
int64_t block_of(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  if (!name.starts_with(kBlock)) return -1;
  const char* end = name.data() + name.size();
  int64_t number = -1;
  const auto parsed = std::from_chars(name.data() + kBlock.size(), end, number);
  return parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '.' ? number : -1;
}

bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

/// Rows [first, first + n) of a matrix, whatever its type.
Tensor row_range(const Tensor& matrix, int64_t first, int64_t n) {
  Tensor part = matrix;
  part.data = matrix.data + first * row_bytes(matrix.dtype, matrix.ne[0]);
  part.ne[1] = n;
  return part;
}

}  // namespace

const gguf::TensorInfo* Binding::find(const std::string& name, std::initializer_list<int64_t> ne) {
  const gguf::TensorInfo* info = file_.find_tensor(name);
  if (info == nullptr) {
    problems_.add(fmt::format("tensor {} is missing, expected shape {}", name, shape_text({ne.begin(), ne.size()})));
    return nullptr;
  }
  known_.insert(info->name);
  std::array<int64_t, 4> expected{1, 1, 1, 1};
  std::copy(ne.begin(), ne.end(), expected.begin());
  if (info->ne == expected) return info;
  const auto n_dims = static_cast<size_t>(info->n_dims);
  problems_.add(fmt::format("tensor {} has shape {}, expected {}", name, shape_text({info->ne.data(), n_dims}),
                            shape_text({ne.begin(), ne.size()})));
  return nullptr;
}

void Binding::import(Weight& to, WeightSource source) {
  const DType dtype = source.tensor.dtype;
  const bool readable = backend_ != nullptr ? backend_->supports(dtype) : dtype_info(dtype).weights;
  if (!readable) {
    problems_.add_unsupported(
        fmt::format("tensor {} has type {}, which is not supported", source.name, dtype_name(dtype)));
    return;
  }
  if (backend_ == nullptr) return;
  sources_.push_back(std::move(source));
  targets_.push_back(&to);
}

Tensor Binding::import_floats(const gguf::TensorInfo& info) {
  if (!is_float(info.dtype)) {
    problems_.add_unsupported(
        fmt::format("tensor {} has type {}, expected F32, F16 or BF16", info.name, dtype_name(info.dtype)));
    return {};
  }
  if (backend_ == nullptr) return {};
  const int64_t rows = info.ne[1];
  std::vector<std::byte> stored(info.size_bytes);
  file_.read(info, stored);
  std::vector<float>& values = floats_.emplace_back(static_cast<size_t>(info.ne[0] * rows));
  dequantise_row(info.dtype, stored.data(), values.data(), info.ne[0] * rows);
  return matrix_f32(values.data(), info.ne[0], rows);
}

void Binding::refuse_scale_tensors() {
  for (const gguf::TensorInfo& info : file_.tensors()) {
    const std::string_view name = info.name;
    if (!name.starts_with("blk.") || !(name.ends_with(".scale") || name.ends_with(".input_scale"))) continue;
    known_.insert(name);
    problems_.add_unsupported(
        fmt::format("tensor {} scales a whole matrix (NVFP4), which is not supported", gguf::printable(name)));
  }
}

/// Blocks of which the model has asked for no tensor at all. A block_count that is too small gives a model that runs
/// and answers nonsense, so these get a line of their own.
void Binding::note_ignored_blocks() {
  std::set<int64_t> used, ignored;
  for (const std::string_view name : known_) used.insert(block_of(name));
  for (const gguf::TensorInfo& info : file_.tensors()) {
    const int64_t block = block_of(info.name);
    if (block >= 0 && !used.contains(block)) ignored.insert(block);
  }
  if (ignored.empty()) return;
  size_t n_tensors = 0;
  for (const gguf::TensorInfo& info : file_.tensors()) {
    if (!ignored.contains(block_of(info.name))) continue;
    known_.insert(info.name);
    ++n_tensors;
  }
  const auto n_used = static_cast<size_t>(std::count_if(used.begin(), used.end(), [](int64_t b) { return b >= 0; }));
  std::vector<std::string> names;
  for (const int64_t block : ignored) {
    if (names.size() == kMaxNamedBlocks) break;
    names.push_back(fmt::format("blk.{}", block));
  }
  notes_.push_back(fmt::format("{} of the file's {} blocks lie outside block_count and are ignored ({} tensors): {}{}",
                               ignored.size(), ignored.size() + n_used, n_tensors, joined(names),
                               ignored.size() > names.size() ? ", ..." : ""));
}

void Binding::note_unknown_tensors(std::string_view architecture) {
  std::vector<std::string> names;
  size_t count = 0;
  for (const gguf::TensorInfo& info : file_.tensors()) {
    if (known_.contains(info.name)) continue;
    if (++count <= kMaxNamedTensors) names.push_back(gguf::printable(info.name));
  }
  if (count == 0) return;
  notes_.push_back(fmt::format("{} tensor{} that {} does not use {} ignored: {}{}", count, count == 1 ? "" : "s",
                               architecture, count == 1 ? "is" : "are", joined(names),
                               count > kMaxNamedTensors ? ", ..." : ""));
}

void Binding::finish(std::string_view architecture, ImportContext& context, FloatStore& floats,
                     std::vector<std::string>& notes) {
  refuse_scale_tensors();
  note_ignored_blocks();
  note_unknown_tensors(architecture);
  problems_.raise(file_.name());
  if (backend_ != nullptr) {
    std::vector<Weight> weights = backend_->import_weights(sources_, context);
    KZ_CHECK(weights.size() == targets_.size());
    for (size_t i = 0; i < weights.size(); ++i) *targets_[i] = std::move(weights[i]);
  }
  floats = std::move(floats_);
  notes.insert(notes.end(), notes_.begin(), notes_.end());
  notes.insert(notes.end(), context.notes.begin(), context.notes.end());
}

PackedBytes Binding::plan(FloatStore& floats) {
  refuse_scale_tensors();
  problems_.raise(file_.name());
  floats = std::move(floats_);
  return backend_->plan_weights(sources_);
}

void Binder::matrix(std::string_view name, int64_t cols, int64_t rows, Weight& to, Arithmetic arithmetic) const {
  const std::string full_name = full(name);
  const gguf::TensorInfo* info = binding_.find(full_name, {cols, rows});
  if (info == nullptr) return;
  const auto [mapped, offset] = binding_.file_.place(*info);
  binding_.import(to, {full_name, binding_.file_.data(*info), arithmetic, mapped, offset});
}

bool Binder::optional_matrix(std::string_view name, int64_t cols, int64_t rows, Weight& to) const {
  if (!has(name)) return false;
  matrix(name, cols, rows, to);
  return true;
}

void Binder::stacked_matrices(std::string_view name, int64_t cols, std::initializer_list<RowRange> parts) const {
  int64_t total = 0;
  for (const RowRange& part : parts) total += part.rows;
  const std::string full_name = full(name);
  const gguf::TensorInfo* info = binding_.find(full_name, {cols, total});
  if (info == nullptr) return;
  const Tensor all = binding_.file_.data(*info);
  const auto [mapped, offset] = binding_.file_.place(*info);
  int64_t first = 0;
  for (const RowRange& part : parts) {
    const Tensor rows = row_range(all, first, part.rows);
    const auto skipped = static_cast<uint64_t>(rows.data - all.data);
    binding_.import(part.to, {fmt::format("{}[{}..{}]", full_name, first, first + part.rows - 1), rows,
                              Arithmetic::automatic, mapped, offset + skipped});
    first += part.rows;
  }
}

void Binder::floats(std::string_view name, std::initializer_list<int64_t> ne, Tensor& to) const {
  const gguf::TensorInfo* info = binding_.find(full(name), ne);
  if (info != nullptr) to = binding_.import_floats(*info);
}

bool Binder::optional_floats(std::string_view name, std::initializer_list<int64_t> ne, Tensor& to) const {
  if (!has(name)) return false;
  floats(name, ne, to);
  return true;
}

void Binder::stacked_floats(std::string_view name, std::initializer_list<ValueRange> parts) const {
  int64_t total = 0;
  for (const ValueRange& part : parts) total += part.count;
  Tensor all;
  floats(name, {total}, all);
  if (all.empty()) return;
  int64_t first = 0;
  for (const ValueRange& part : parts) {
    part.to = slice(all, first, part.count);
    first += part.count;
  }
}

std::vector<double> Binder::optional_divisors(std::string_view name, int64_t n) const {
  if (!has(name)) return {};
  const gguf::TensorInfo* info = binding_.find(full(name), {n});
  if (info == nullptr) return {};
  if (info->dtype != DType::f32) {
    binding_.problems_.add_unsupported(
        fmt::format("tensor {} has type {}, expected F32", info->name, dtype_name(info->dtype)));
    return {};
  }
  std::vector<float> values(static_cast<size_t>(n));
  binding_.file_.read(*info, std::as_writable_bytes(std::span(values)));
  for (const float value : values) {
    if (std::isfinite(value) && value > 0) continue;
    binding_.problems_.add(fmt::format("tensor {} holds {}, expected finite values above 0", info->name, value));
    return {};
  }
  return {values.begin(), values.end()};
}

bool Binder::has(std::string_view name) const { return binding_.file_.find_tensor(full(name)) != nullptr; }

int64_t Binder::leave_alone(std::string_view beginning) const {
  const std::string full_beginning = full(beginning);
  int64_t count = 0;
  for (const gguf::TensorInfo& info : binding_.file_.tensors()) {
    if (!info.name.starts_with(full_beginning)) continue;
    binding_.known_.insert(info.name);
    ++count;
  }
  return count;
}

void Binder::note(std::string text) const { binding_.notes_.push_back(std::move(text)); }

}  // namespace kz
