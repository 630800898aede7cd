#include "model/architectures.h"

#include <fmt/format.h>

#include "gguf/printable.h"
#include "model/binder.h"

namespace kz {
namespace {

struct Architecture {
  std::string_view name;  ///< value of general.architecture
  std::unique_ptr<Model> (*make)(const gguf::File& file);
};

// Sorted by name.
constexpr Architecture kArchitectures[] = {
    {"llama", make_llama},
    {"qwen2", make_qwen2},
    {"qwen3", make_qwen3},
    {"qwen35", make_qwen35},
};

}  // namespace

std::vector<std::string_view> known_architectures() {
  std::vector<std::string_view> names;
  for (const Architecture& architecture : kArchitectures) names.push_back(architecture.name);
  return names;
}

std::unique_ptr<Model> read_model(const gguf::File& file) {
  const std::string_view name = file.text("general.architecture");
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == name) return architecture.make(file);
  }
  std::vector<std::string> known;
  for (const std::string_view each : known_architectures()) known.emplace_back(each);
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: architecture '{}' is not supported; known: {}", gguf::printable_path(file.name()),
                          gguf::printable(name), joined(known)));
}

void bind_model(Model& model, const gguf::File& file, Backend* backend, ImportContext& context) {
  Binding binding(file, backend);
  Binder binder(binding);
  model.bind(binder);
  binding.finish(model.config().architecture, context, model.floats_, model.notes_);
}

void bind_model(Model& model, const gguf::File& file, Backend* backend) {
  ImportContext context;
  bind_model(model, file, backend, context);
}

PackedBytes plan_model(Model& model, const gguf::File& file, Backend& backend) {
  Binding binding(file, &backend);
  Binder binder(binding);
  model.bind(binder);
  return binding.plan(model.floats_);
}

int64_t Model::float_bytes() const {
  int64_t bytes = 0;
  for (const std::vector<float>& values : floats_) bytes += static_cast<int64_t>(values.size() * sizeof(float));
  return bytes;
}

}  // namespace kz
