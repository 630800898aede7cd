// `kazeia inspect`: what a file holds and what it will cost, without loading it.
#include "apps/cli/commands.h"
#include "apps/cli/console.h"
#include "apps/cli/flags.h"
#include "apps/cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

namespace kz::cli {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  kazeia inspect -m model.gguf\n"
    "  kazeia inspect -m model.gguf -c 8192 -ctk q8_0 -ctv q8_0\n"
    "  kazeia inspect -m model.gguf --template";

struct InspectFlags {
  ModelFlags model;
  SessionFlags session;
  bool json = false, show_template = false;
};

std::string ids_text(const std::vector<int32_t>& ids) {
  std::string out;
  for (const int32_t id : ids) out += (out.empty() ? "" : ", ") + std::to_string(id);
  return out.empty() ? "none" : out;
}

std::string id_text(int32_t id) { return id < 0 ? "none" : std::to_string(id); }

nlohmann::json id_json(int32_t id) { return id < 0 ? nlohmann::json(nullptr) : nlohmann::json(id); }

std::string template_text(const ModelInfo& info) {
  if (info.chat_template.empty()) return "none";
  return fmt::format("{} bytes (--template prints it)", info.chat_template.size());
}

/// Kinds of layers are known only of a model that this engine can read.
std::string layers_text(const ModelInfo& info) {
  if (info.n_attention_layers + info.n_delta_layers == 0) return std::to_string(info.n_layers);
  return fmt::format("{} ({} attention, {} delta net)", info.n_layers, info.n_attention_layers, info.n_delta_layers);
}

std::string model_table(const ModelInfo& info) {
  std::vector<std::vector<std::string>> rows = {
      {"file", printable(info.path)},
      {"size",
       fmt::format("{} in {} file(s), GGUF version {}", size_text(info.file_bytes), info.n_shards, info.gguf_version)},
      {"name", info.name.empty() ? "-" : printable(info.name)},
      {"architecture", printable(info.architecture)},
      {"file type", printable(info.file_type)},
      {"parameters",
       fmt::format("{} in {} tensors ({})", info.n_parameters, info.n_tensors, size_text(info.weight_bytes))},
      {"layers", layers_text(info)},
      {"width", fmt::format("{} hidden, {} feed-forward", info.n_embd, info.n_ff)},
      {"heads", fmt::format("{} query, {} key/value, {} wide keys, {} wide values", info.n_heads, info.n_kv_heads,
                            info.key_dim, info.value_dim)},
      {"vocabulary", fmt::format("{} rows, {} tokens, head {}", info.n_vocab, info.n_tokens,
                                 info.tied ? "tied to the embeddings" : "of its own")},
      {"trained context", fmt::format("{} tokens", info.n_ctx_train)},
      {"tokenizer", fmt::format("{} / {}, {} merges", printable(info.tokenizer_model), printable(info.tokenizer_pre),
                                info.n_merges)},
      {"begin / end",
       fmt::format("bos {}{}, eos {}, answers end at: {}", id_text(info.bos),
                   info.adds_bos ? " (added)" : " (not added)", id_text(info.eos), ids_text(info.end_tokens))},
      {"chat template", template_text(info)},
  };
  for (const std::string& note : info.notes) rows.push_back({"note", printable(note)});
  if (!info.problem.empty()) rows.push_back({"cannot run", one_line(info.problem)});
  return table(rows);
}

std::string tensor_table(const ModelInfo& info) {
  std::vector<std::vector<std::string>> rows = {{"tensors", "type", "shape", "count", "size"}};
  for (const TensorSummary& item : info.tensors) {
    rows.push_back(
        {"  " + printable(item.kind), item.type, item.shape, std::to_string(item.count), size_text(item.size_bytes)});
  }
  return table(rows, {3, 4});
}

nlohmann::json tensors_json(const ModelInfo& info) {
  nlohmann::json out = nlohmann::json::array();
  for (const TensorSummary& item : info.tensors) {
    out.push_back({{"kind", item.kind},
                   {"type", item.type},
                   {"shape", item.shape},
                   {"count", item.count},
                   {"size_bytes", item.size_bytes}});
  }
  return out;
}

nlohmann::json model_json(const ModelInfo& info) {
  return {
      {"path", info.path},
      {"architecture", info.architecture},
      {"name", info.name},
      {"file_type", info.file_type},
      {"gguf_version", info.gguf_version},
      {"n_shards", info.n_shards},
      {"file_bytes", info.file_bytes},
      {"n_tensors", info.n_tensors},
      {"n_parameters", info.n_parameters},
      {"weight_bytes", info.weight_bytes},
      {"n_layers", info.n_layers},
      {"n_attention_layers", info.n_attention_layers},
      {"n_delta_layers", info.n_delta_layers},
      {"n_embd", info.n_embd},
      {"n_ff", info.n_ff},
      {"n_heads", info.n_heads},
      {"n_kv_heads", info.n_kv_heads},
      {"key_dim", info.key_dim},
      {"value_dim", info.value_dim},
      {"n_vocab", info.n_vocab},
      {"n_ctx_train", info.n_ctx_train},
      {"tied", info.tied},
      {"tokenizer",
       {{"model", info.tokenizer_model},
        {"pre", info.tokenizer_pre},
        {"n_tokens", info.n_tokens},
        {"n_merges", info.n_merges},
        {"bos", id_json(info.bos)},
        {"eos", id_json(info.eos)},
        {"end_tokens", info.end_tokens},
        {"adds_bos", info.adds_bos}}},
      {"chat_template", info.chat_template},
      {"tensors", tensors_json(info)},
      {"notes", info.notes},
      {"problem", info.problem.empty() ? nlohmann::json(nullptr) : nlohmann::json(info.problem)},
  };
}

nlohmann::json cost_json(const SessionOptions& options, const std::vector<MemoryItem>& memory) {
  int64_t total = 0;
  for (const MemoryItem& item : memory) total += item.size_bytes;
  return {{"n_ctx", options.n_ctx},           {"n_batch", options.n_batch},
          {"cache_type_k", options.key_type}, {"cache_type_v", options.value_type},
          {"items", memory_json(memory)},     {"total_bytes", total}};
}

/// Of a file that cannot run there is nothing to compute the memory of. One that is damaged is an error all the same.
int show_without_memory(const ModelInfo& info, bool json) {
  if (json) {
    nlohmann::json out = model_json(info);
    out["memory"] = nullptr;
    print_json(out);
  } else {
    write_out(fmt::format("{}\n{}", model_table(info), tensor_table(info)));
  }
  flush_out();
  if (info.is_damaged) throw Error(ErrorCode::bad_file, info.problem);
  return 0;
}

int run_inspect(const InspectFlags& flags, bool context_given) {
  const ModelSource source = flags.model.source();
  ModelInfo info = inspect(source);
  if (flags.show_template && !flags.json) {
    if (info.chat_template.empty()) throw Error(ErrorCode::bad_file, info.path + ": has no chat template");
    write_out(info.chat_template + (info.chat_template.ends_with('\n') ? "" : "\n"));
    return 0;
  }
  if (!info.problem.empty()) return show_without_memory(info, flags.json);
  SessionOptions options = flags.session.options;
  const bool from_model = options.n_ctx == 0 || (!context_given && options.n_ctx > info.n_ctx_train);
  if (from_model && info.n_ctx_train > 0) options.n_ctx = std::min(info.n_ctx_train, kMaxContext);
  std::vector<MemoryItem> memory;
  try {
    memory = estimate_memory(flags.model.engine_options(), options);
  } catch (const Error& error) {  // what the file says of itself is still worth showing
    if (error.code() == ErrorCode::bad_argument) throw;
    info.notes.push_back(std::string("cannot run: ") + error.what());
  }
  if (flags.json) {
    nlohmann::json out = model_json(info);
    out["memory"] = cost_json(options, memory);
    print_json(out);
    return 0;
  }
  write_out(fmt::format("{}\n{}\nmemory of one session of {} tokens ({} keys, {} values, batch {})\n{}",
                        model_table(info), tensor_table(info), options.n_ctx, options.key_type, options.value_type,
                        options.n_batch, memory_table(memory)));
  return 0;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("inspect", "Show what a model file holds and what memory it will need");
  command->footer(kFooter);
  const auto flags = std::make_shared<InspectFlags>();
  flags->model.add_path(*command);
  flags->session.add(*command, "Context to compute the memory for; 0: what the model allows (default 4096)");
  add_switch(*command, "--template", flags->show_template, "Print only the chat template, whole");
  add_switch(*command, "--json", flags->json, "Print one JSON object");
  command->callback([flags, command, &action] {
    const bool context_given = command->count("--ctx-size") > 0;
    action = [flags, context_given] { return run_inspect(*flags, context_given); };
  });
}

}  // namespace kz::cli
