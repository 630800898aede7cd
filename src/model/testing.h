// For tests only: model files to change, and a way to run them without an engine.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "core/blocks.h"
#include "core/error.h"
#include "gguf/file.h"
#include "gguf/writer.h"
#include "model/model.h"

namespace kz::testing {

/// Whether a message has all these parts; shows the message when it has not.
inline ::testing::AssertionResult says(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) {
    if (text.find(part) == std::string::npos)
      return ::testing::AssertionFailure() << '"' << part << "\" is not in: " << text;
  }
  return ::testing::AssertionSuccess() << "in: " << text;
}

/// A model file taken apart: change, drop or add keys and tensors, then open the result.
class EditableModel {
 public:
  struct Part {
    std::string name;
    DType dtype = DType::f32;
    std::vector<int64_t> ne;
    std::vector<std::byte> bytes;
  };

  explicit EditableModel(const std::string& path) : source_(gguf::File::open(path)) {
    for (const gguf::TensorInfo& info : source_.tensors()) {
      const std::byte* data = source_.data(info).data;
      tensors_.push_back({std::string(info.name),
                          info.dtype,
                          {info.ne.begin(), info.ne.begin() + info.n_dims},
                          {data, data + info.size_bytes}});
    }
    for (const gguf::KeyValue& kv : source_.keys()) edits_.add_raw(kv);
  }

  /// Keys are changed through the writer: adding one replaces that of the same name.
  gguf::Writer& keys() { return edits_; }
  void drop_key(const std::string& key) { dropped_keys_.insert(key); }

  Part& tensor(std::string_view name) {
    for (Part& part : tensors_) {
      if (part.name == name) return part;
    }
    throw Error(ErrorCode::internal, "no tensor " + std::string(name));
  }
  std::vector<float> floats(std::string_view name) {
    const Part& part = tensor(name);
    int64_t n = 1;
    for (const int64_t size : part.ne) n *= size;
    std::vector<float> values(static_cast<size_t>(n));
    dequantise_row(part.dtype, part.bytes.data(), values.data(), n);
    return values;
  }
  /// Adds or replaces an F32 tensor.
  void set(const std::string& name, std::vector<int64_t> ne, std::span<const float> values) {
    drop(name);
    const std::span<const std::byte> bytes = std::as_bytes(values);
    tensors_.push_back({name, DType::f32, std::move(ne), {bytes.begin(), bytes.end()}});
  }
  void add(Part part) { tensors_.push_back(std::move(part)); }
  void rename(std::string_view name, const std::string& to) { tensor(name).name = to; }
  void drop(std::string_view name) {
    std::erase_if(tensors_, [&](const Part& part) { return part.name == name; });
  }
  /// Drops every tensor whose name begins so; returns how many.
  size_t drop_all(std::string_view beginning) {
    return std::erase_if(tensors_, [&](const Part& part) { return part.name.starts_with(beginning); });
  }
  const std::vector<Part>& tensors() const { return tensors_; }

  /// Writes the file to a temporary name, opens it and removes the name.
  gguf::File open() const {
    static std::atomic<int> serial{0};
    const std::string path = (std::filesystem::temp_directory_path() /
                              ("kz-model-" + std::to_string(getpid()) + '-' + std::to_string(serial++) + ".gguf"))
                                 .string();
    gguf::Writer writer = edits_;
    if (!dropped_keys_.empty()) writer = without_dropped_keys();
    for (const Part& part : tensors_) {
      writer.add_tensor(part.name, part.dtype, part.ne, [&part](const auto& put) { put(part.bytes); });
    }
    writer.write(path);
    gguf::File file = gguf::File::open(path);
    std::filesystem::remove(path);
    return file;
  }

 private:
  gguf::Writer without_dropped_keys() const {
    gguf::Writer writer;
    const std::string path =
        (std::filesystem::temp_directory_path() / ("kz-keys-" + std::to_string(getpid()) + ".gguf")).string();
    edits_.write(path);
    const gguf::File all = gguf::File::open(path);
    std::filesystem::remove(path);
    for (const gguf::KeyValue& kv : all.keys()) {
      if (!dropped_keys_.contains(std::string(kv.key))) writer.add_raw(kv);
    }
    return writer;
  }

  gguf::File source_;
  gguf::Writer edits_;
  std::set<std::string> dropped_keys_;
  std::vector<Part> tensors_;
};

/// A bound model on a backend: runs batches of several sequences and returns the logits of every row.
class Runner {
 public:
  static constexpr int64_t kMaxRows = 320;
  static constexpr int64_t kCapacity = 512;

  Runner(gguf::File file, std::unique_ptr<Backend> backend)
      : file_(std::move(file)), backend_(std::move(backend)), model_(read_model(file_)) {
    bind_model(*model_, file_, backend_.get());
    WorkLimits limits = model_->work_limits(kMaxRows, kCapacity);
    limits.delta.form = DeltaForm::chunked;
    backend_->reserve(limits);
    layout_ = model_->state_layout();
    pool_ = std::make_shared<KvPool>(layout_, 8, DType::f32, DType::f32);
    scratch_ = Arena("scratch", static_cast<size_t>(model_->scratch_bytes(kMaxRows, kMaxRows)));
  }

  const Model& model() const { return *model_; }
  Backend& backend() { return *backend_; }
  std::unique_ptr<State> new_state() const { return std::make_unique<State>(layout_, pool_, kCapacity); }

  struct Part {
    State* state;
    std::span<const int32_t> tokens;
  };
  /// Runs and commits one batch; returns {V, rows} of all its rows.
  std::vector<float> forward(std::span<const Part> parts, DeltaForm form = DeltaForm::token) {
    std::vector<int32_t> tokens;
    for (const Part& part : parts) tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
    std::vector<int32_t> all_rows(tokens.size());
    for (size_t i = 0; i < all_rows.size(); ++i) all_rows[i] = static_cast<int32_t>(i);
    return forward(parts, all_rows, form);
  }
  /// The same with the logits of some rows only.
  std::vector<float> forward(std::span<const Part> parts, std::span<const int32_t> logit_rows, DeltaForm form) {
    std::vector<int32_t> tokens;
    std::vector<Span> spans;
    for (const Part& part : parts) {
      spans.push_back({part.state, part.state->position(), static_cast<int64_t>(tokens.size()),
                       static_cast<int64_t>(part.tokens.size())});
      tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
      part.state->begin(static_cast<int64_t>(part.tokens.size()));
    }
    const int64_t n_vocab = model_->config().n_vocab;
    std::vector<float> logits(static_cast<size_t>(n_vocab) * logit_rows.size());
    Rows rows{spans, tokens, logit_rows, form};
    // Work memory holds something else each time: a verb that reads what nobody wrote shows as NaN, or as different
    // results of equal runs.
    poison_ = poison_ == 0xff ? 0x3f : 0xff;
    std::memset(scratch_.data(), poison_, scratch_.size_bytes());
    Scratch scratch(scratch_.data(), static_cast<size_t>(model_->scratch_bytes(rows.size(), kMaxRows)));  // no more
    model_->forward(*backend_, rows, scratch,
                    matrix_f32(logits.data(), n_vocab, static_cast<int64_t>(logit_rows.size())));
    for (const Part& part : parts) part.state->commit(static_cast<int64_t>(part.tokens.size()));
    return logits;
  }

  /// A fresh sequence fed in pieces of `chunk` tokens: logits of all rows.
  std::vector<float> run(std::span<const int32_t> tokens, size_t chunk, DeltaForm form = DeltaForm::token) {
    const std::unique_ptr<State> state = new_state();
    std::vector<float> logits;
    while (!tokens.empty()) {
      const Part part{state.get(), tokens.first(std::min(chunk, tokens.size()))};
      const std::vector<float> rows = forward({&part, 1}, form);
      logits.insert(logits.end(), rows.begin(), rows.end());
      tokens = tokens.subspan(part.tokens.size());
    }
    return logits;
  }

 private:
  gguf::File file_;  // weights may be used where they lie in it
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Model> model_;
  StateLayout layout_;
  std::shared_ptr<KvPool> pool_;
  Arena scratch_;
  int poison_ = 0;
};

}  // namespace kz::testing
