// kz::quantize: one file into another with fewer bits.
#include <fmt/format.h>
#include <kazeia/engine.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <optional>

#include "core/blocks.h"
#include "core/thread_pool.h"
#include "engine/quantize_plan.h"
#include "gguf/writer.h"

namespace kz {
namespace {

/// Values converted at a time, so that memory does not grow with the tensor.
constexpr int64_t kPieceElements = int64_t{1} << 20;
constexpr int kMaxThreads = 512;

bool is_quantised(DType type) { return dtype_info(type).block_elements > 1; }

void check_options(const QuantizeOptions& options) {
  if (options.n_threads >= 0 && options.n_threads <= kMaxThreads) return;
  throw Error(ErrorCode::bad_argument,
              fmt::format("threads is {}, expected 0 (one per core) to {}", options.n_threads, kMaxThreads));
}

/// The target is none of the source's files, under whatever name, and there is something to quantise.
void check_files(const gguf::File& file, const std::string& target) {
  for (int shard = 0; shard < file.n_shards(); ++shard) {
    const std::string& path = file.shard_name(shard);
    std::error_code ignored;  // a target that does not exist is no reason to stop
    if (path != target && !std::filesystem::equivalent(path, target, ignored)) continue;
    throw Error(ErrorCode::bad_argument, fmt::format("source and target are the same file: {}", path));
  }
  if (!file.tensors().empty()) return;
  throw Error(ErrorCode::bad_file, fmt::format("{}: found no tensors, expected a model to quantise", file.name()));
}

/// Refuses what would lose quality unseen, and types that cannot be read.
void check_plan(const gguf::File& file, const QuantizePlan& plan, bool allow_requantize) {
  for (const TensorPlan& tensor : plan.tensors) {
    const DType from = tensor.source->dtype;
    if (from == tensor.target) continue;
    if (!dtype_info(from).weights) {
      throw Error(ErrorCode::unsupported, fmt::format("{}: tensor '{}' has type {}, which cannot be read", file.name(),
                                                      tensor.source->name, dtype_name(from)));
    }
    if (is_quantised(from) && !allow_requantize) {
      throw Error(ErrorCode::bad_argument,
                  fmt::format("{}: tensor '{}' is {} already; start from an F16, BF16 or F32 file, or pass "
                              "--allow-requantize to accept the loss",
                              file.name(), tensor.source->name, dtype_name(from)));
    }
  }
}

/// Converts one tensor row by row, a piece at a time, and hands the pieces to `put`.
class TensorConversion {
 public:
  TensorConversion(const gguf::File& file, const TensorPlan& plan, ThreadPool& pool)
      : file_(file),
        plan_(plan),
        pool_(pool),
        data_(file.data(*plan.source)),
        cols_(plan.source->ne[0]),
        n_rows_(plan.source->ne[1] * plan.source->ne[2] * plan.source->ne[3]),
        source_row_(row_bytes(plan.source->dtype, cols_)),
        target_row_(row_bytes(plan.target, cols_)) {}

  void run(const std::function<void(std::span<const std::byte>)>& put) {
    const int64_t n_piece = std::clamp(kPieceElements / std::max(cols_, int64_t{1}), int64_t{1}, n_rows_);
    std::vector<std::byte> out(static_cast<size_t>(n_piece * target_row_));
    std::vector<std::vector<float>> values(static_cast<size_t>(pool_.size()));
    for (std::vector<float>& row : values) row.resize(static_cast<size_t>(cols_));
    for (int64_t first = 0; first < n_rows_; first += n_piece) {
      const int64_t n = std::min(n_piece, n_rows_ - first);
      pool_.parallel_for(n, 1, [&](int64_t begin, int64_t end, int worker) {
        std::vector<float>& row = values[static_cast<size_t>(worker)];
        for (int64_t i = begin; i < end; ++i) convert_row(first + i, row, out.data() + i * target_row_);
      });
      throw_if_bad();
      put({out.data(), static_cast<size_t>(n * target_row_)});
    }
  }

 private:
  struct Fault {
    int64_t row;
    std::string text;  ///< what is wrong with the row, without its number
  };

  void convert_row(int64_t row, std::vector<float>& values, std::byte* out) {
    dequantise_row(plan_.source->dtype, data_.data + row * source_row_, values.data(), cols_);
    for (int64_t col = 0; col < cols_; ++col) {
      const float value = values[static_cast<size_t>(col)];
      if (!std::isfinite(value)) return remember(row, fmt::format("non-finite value {} at column {}", value, col));
    }
    try {
      quantise_row(plan_.target, values.data(), out, cols_);
    } catch (const Error& error) {  // finite, but no block of that type can hold it
      if (error.code() != ErrorCode::bad_argument) throw;
      remember(row, error.what());
    }
  }

  /// Threads meet bad values in any order; the first one of the tensor is reported.
  void remember(int64_t row, std::string text) {
    const std::lock_guard lock(mutex_);
    if (!fault_ || row < fault_->row) fault_ = Fault{row, std::move(text)};
  }

  void throw_if_bad() const {
    if (!fault_) return;
    throw Error(ErrorCode::bad_file, fmt::format("{}: tensor '{}': row {}: {}", file_.name(), plan_.source->name,
                                                 fault_->row, fault_->text));
  }

  const gguf::File& file_;
  const TensorPlan& plan_;
  ThreadPool& pool_;
  Tensor data_;
  int64_t cols_, n_rows_, source_row_, target_row_;
  std::mutex mutex_;
  std::optional<Fault> fault_;
};

/// All keys but those that describe how the source was stored; the two quantisation keys come last.
void copy_keys(const gguf::File& file, const QuantizeRecipe& recipe, gguf::Writer& writer) {
  for (const gguf::KeyValue& kv : file.keys()) {
    const bool is_ours = kv.key == "general.quantization_version" || kv.key == "general.file_type";
    if (!is_ours && !kv.key.starts_with("split.")) writer.add_raw(kv);
  }
  writer.add_integer("general.quantization_version", gguf::ValueType::u32, 2);
  writer.add_integer("general.file_type", gguf::ValueType::u32, recipe.file_type);
}

void add_tensor(const gguf::File& file, const TensorPlan& tensor, ThreadPool& pool, gguf::Writer& writer) {
  const gguf::TensorInfo& source = *tensor.source;
  const std::span<const int64_t> ne(source.ne.data(), static_cast<size_t>(source.n_dims));
  const auto fill = [&file, tensor, &pool](const std::function<void(std::span<const std::byte>)>& put) {
    if (tensor.target == tensor.source->dtype) {
      put({file.data(*tensor.source).data, static_cast<size_t>(tensor.source->size_bytes)});
    } else {
      TensorConversion(file, tensor, pool).run(put);
    }
    file.not_needed(*tensor.source);
  };
  writer.add_tensor(source.name, tensor.target, ne, fill);
}

}  // namespace

QuantizeResult quantize(const std::string& source, const std::string& target, const QuantizeOptions& options) {
  const QuantizeRecipe& recipe = find_recipe(options.type);
  check_options(options);
  const gguf::File file = gguf::File::open(source);
  check_files(file, target);
  QuantizePlan plan = plan_quantization(file, recipe, options.pure);
  check_plan(file, plan, options.allow_requantize);

  ThreadPool pool(options.n_threads);
  gguf::Writer writer(3, file.alignment());
  copy_keys(file, recipe, writer);
  for (const TensorPlan& tensor : plan.tensors) add_tensor(file, tensor, pool, writer);
  writer.write(target, options.progress);

  QuantizeResult result;
  result.source_bytes = static_cast<int64_t>(file.size_bytes());
  result.target_bytes = static_cast<int64_t>(std::filesystem::file_size(target));
  result.fallbacks = std::move(plan.fallbacks);
  return result;
}

}  // namespace kz
