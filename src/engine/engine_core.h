// What an Engine owns and its sessions share.
#pragma once

#include <kazeia/engine.h>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "core/affinity.h"
#include "gguf/file.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace kz {

/// Everything that a model needs to run; immutable after opening but for the backend's work memory and counters,
/// which forward_mutex guards. Sessions hold it too, so an Engine may go away while they run.
struct EngineCore {
  explicit EngineCore(gguf::File opened) : file(std::move(opened)) {}

  gguf::File file;
  std::unique_ptr<Model> model;
  std::unique_ptr<Tokenizer> tokenizer;  ///< null when the file holds no vocabulary
  std::unique_ptr<Backend> backend;
  ModelInfo info;
  std::vector<int> cores;  ///< EngineOptions::cores
  /// One forward at a time: the backend's threads and work memory serve all sessions in turn.
  mutable std::mutex forward_mutex;

  /// Keeps the calling thread on the first of `cores`, if there are any, while the result lives.
  std::optional<PinnedWhile> place_caller() const;
  /// Throws Error(unsupported) when the file holds no vocabulary.
  const Tokenizer& text() const;
  /// Throws Error(bad_argument) unless ids holds at least one id and all are in the vocabulary.
  void check_ids(std::span<const int32_t> ids) const;
};

struct Engine::Impl {
  std::shared_ptr<EngineCore> core;
};

/// The backend that the options name. Throws Error(bad_argument | unsupported).
std::unique_ptr<Backend> make_backend(const EngineOptions& options);

/// Opens the file that a source names, checked.
gguf::File open_source(const ModelSource& source);

}  // namespace kz
