// Opening a model, and what an Engine answers by itself.
#include <fmt/format.h>

#include "cpu/cpu_backend.h"
#include "engine/engine_core.h"
#include "engine/memory_account.h"
#include "engine/model_info.h"
#include "gguf/identity.h"

namespace kz {
namespace {

constexpr int kMaxThreads = 512;
constexpr double kVocabularyShare = 0.1;  // of the time of loading

void report(const EngineOptions& options, double share) {
  if (options.progress && !options.progress(share)) {
    throw Error(ErrorCode::cancelled, fmt::format("loading {} was cancelled", options.model.path));
  }
}

}  // namespace

std::unique_ptr<Backend> make_backend(const EngineOptions& options) {
  if (options.n_threads < 0 || options.n_threads > kMaxThreads) {
    throw Error(ErrorCode::bad_argument,
                fmt::format("threads is {}, expected 0 (one per core) to {}", options.n_threads, kMaxThreads));
  }
  if (options.backend == "cpu") {
    const int n_threads =
        options.n_threads == 0 && !options.cores.empty() ? static_cast<int>(options.cores.size()) : options.n_threads;
    return make_cpu_backend({n_threads, options.isa, options.activations, options.cores, options.packed_cache});
  }
  if (options.backend == "reference") {
    if (options.isa != "auto") {
      throw Error(ErrorCode::bad_argument,
                  fmt::format("isa is '{}', but the reference backend has no kernel tables", options.isa));
    }
    return make_reference_backend();
  }
  throw Error(ErrorCode::bad_argument, fmt::format("backend is '{}', expected 'cpu' or 'reference'", options.backend));
}

gguf::File open_source(const ModelSource& source) {
  if (source.fd < 0) return gguf::File::open(source.path);
  const std::string name = source.path.empty() ? fmt::format("descriptor {}", source.fd) : source.path;
  return gguf::File::open(source.fd, source.offset, source.length, name);
}

const Tokenizer& EngineCore::text() const {
  if (tokenizer) return *tokenizer;
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: the file holds no vocabulary, it runs on token ids only", file.name()));
}

void EngineCore::check_ids(std::span<const int32_t> ids) const {
  if (ids.empty()) throw Error(ErrorCode::bad_argument, "the prompt is empty, expected at least one token");
  const int64_t n_vocab = model->config().n_vocab;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < n_vocab) continue;
    throw Error(ErrorCode::bad_argument,
                fmt::format("token {} is {}, expected an id of the vocabulary (0 to {})", i, ids[i], n_vocab - 1));
  }
}

std::optional<PinnedWhile> EngineCore::place_caller() const {
  std::optional<PinnedWhile> pinned;
  if (!cores.empty()) pinned.emplace(cores.front());
  return pinned;
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

std::unique_ptr<Engine> Engine::open(const EngineOptions& options) {
  report(options, 0);
  auto core = std::make_shared<EngineCore>(open_source(options.model));
  core->model = read_model(core->file);
  core->backend = make_backend(options);
  core->cores = options.cores;
  std::vector<std::string> notes;
  core->tokenizer = open_tokenizer(core->file, *core->model, notes);
  report(options, kVocabularyShare);
  ImportContext context;
  if (!options.packed_cache.empty()) {
    const gguf::Identity identity = gguf::identify(core->file);
    context.content_key = identity.content;
    context.stamp = identity.stamp;
  }
  context.progress = [&](double share) { report(options, kVocabularyShare + (1 - kVocabularyShare) * share); };
  bind_model(*core->model, core->file, core->backend.get(), context);
  core->info = describe(core->file, *core->model, core->tokenizer.get());
  core->info.notes.insert(core->info.notes.end(), notes.begin(), notes.end());
  report(options, 1);
  auto impl = std::make_unique<Impl>();
  impl->core = std::move(core);
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

const ModelInfo& Engine::info() const { return impl_->core->info; }
std::string Engine::backend() const { return std::string(impl_->core->backend->name()); }
std::string Engine::kernels() const { return std::string(impl_->core->backend->kernels()); }
int Engine::n_threads() const { return impl_->core->backend->n_threads(); }

std::vector<KernelPlacement> Engine::placement() const {
  const std::lock_guard lock(impl_->core->forward_mutex);
  std::vector<KernelPlacement> lines;
  for (const KernelUse& use : impl_->core->backend->kernel_uses()) {
    lines.push_back({use.verb, use.kernel, use.device, use.calls, use.weights, use.bytes, use.seconds, use.n_timed,
                     use.multiply_adds});
  }
  return lines;
}

void Engine::time_verbs(bool on) const {
  const std::lock_guard lock(impl_->core->forward_mutex);
  impl_->core->backend->time_verbs(on);
}

std::vector<MemoryItem> Engine::memory() const {
  const EngineCore& core = *impl_->core;
  return engine_memory(core.file, core.model->float_bytes(), core.tokenizer ? core.tokenizer->size_bytes() : 0,
                       core.backend->packed_bytes());
}

std::vector<int32_t> Engine::tokenize(std::string_view text, TokenizeOptions options) const {
  return impl_->core->text().encode(text, {options.parse_special, options.add_special});
}

std::string Engine::detokenize(std::span<const int32_t> ids, bool show_special) const {
  const Tokenizer& tokenizer = impl_->core->text();
  if (!ids.empty()) impl_->core->check_ids(ids);
  return tokenizer.decode(ids, show_special);
}

std::vector<std::pair<std::string, bool>> kernel_tables() {
  std::vector<std::pair<std::string, bool>> tables;
  for (const KernelTableInfo& table : cpu_kernel_tables())
    tables.emplace_back(std::string(table.name), table.runs_here);
  return tables;
}

}  // namespace kz
