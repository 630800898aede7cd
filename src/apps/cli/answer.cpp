#include "apps/cli/answer.h"

#include "apps/cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace kz::cli {
namespace {

std::string finish_text(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop (the answer is complete)";
    case FinishReason::length:
      return "length (-n reached)";
    case FinishReason::context:
      return "context (-c is full)";
    case FinishReason::cancelled:
      return "cancelled";
  }
  return "unknown";
}

std::string prompt_line(const Answer& answer) {
  const GenerateResult& result = answer.result;
  std::string line = fmt::format("prompt   {} tokens in {:.3f} s, {:.1f} tok/s", result.n_prompt, result.prompt_seconds,
                                 result.prompt_rate_tok_s());
  if (answer.first_text_seconds >= 0) line += fmt::format(", first text after {:.3f} s", answer.first_text_seconds);
  return line + "\n";
}

/// Which kernels, and how many verbs ran on which device.
std::string placement_line(const Engine& engine) {
  std::map<std::string, std::set<std::string>> verbs_of;  // by device
  for (const KernelPlacement& item : engine.placement()) verbs_of[item.device].insert(item.verb);
  std::string places;
  for (const auto& [device, verbs] : verbs_of) {
    places += fmt::format("{}{} verbs on {}", places.empty() ? "" : ", ", verbs.size(), device);
  }
  return fmt::format("kernels  {} ({} backend, {} threads); {}\n", engine.kernels(), engine.backend(),
                     engine.n_threads(), places.empty() ? "nothing ran" : places);
}

std::string decode_line(const GenerateResult& result) {
  const size_t n = result.tokens.size();
  if (n == 1) return fmt::format("decode   1 token in {:.3f} s, too few for a rate\n", result.decode_seconds);
  std::string line = fmt::format("decode   {} tokens in {:.3f} s", n, result.decode_seconds);
  if (result.decode_rate_tok_s() > 0) line += fmt::format(", {:.1f} tok/s", result.decode_rate_tok_s());
  return line + "\n";
}

std::string placement_table(const Engine& engine) {
  std::vector<std::vector<std::string>> rows = {{"  verb", "weights", "kernel", "device", "calls"}};
  for (const KernelPlacement& item : engine.placement()) {
    rows.push_back({"  " + item.verb, item.weights, item.kernel, item.device, std::to_string(item.calls)});
  }
  return table(rows, {4});
}

nlohmann::json timings_json(const Answer& answer) {
  const GenerateResult& result = answer.result;
  nlohmann::json timings = {
      {"load_ms", answer.load_seconds * 1e3},
      {"cache_n", result.n_reused},
      {"prompt_n", result.n_prompt},
      {"prompt_ms", result.prompt_seconds * 1e3},
      {"prompt_per_second", result.prompt_rate_tok_s()},
      {"predicted_n", result.tokens.size()},
      {"predicted_ms", result.decode_seconds * 1e3},
      {"predicted_per_second", result.decode_rate_tok_s()},
      {"first_text_ms", nullptr},
  };
  if (answer.first_text_seconds >= 0) timings["first_text_ms"] = answer.first_text_seconds * 1e3;
  return timings;
}

nlohmann::json placement_json(const Engine& engine) {
  nlohmann::json out = nlohmann::json::array();
  for (const KernelPlacement& item : engine.placement()) {
    out.push_back({{"verb", item.verb},
                   {"weights", item.weights},
                   {"kernel", item.kernel},
                   {"device", item.device},
                   {"calls", item.calls}});
  }
  return out;
}

}  // namespace

std::vector<MemoryItem> total_memory(const Engine& engine, const Session& session) {
  std::vector<MemoryItem> total;
  const auto add = [&total](const MemoryItem& item) {
    const auto same =
        std::find_if(total.begin(), total.end(), [&](const MemoryItem& other) { return other.what == item.what; });
    if (same == total.end()) {
      total.push_back(item);
    } else {
      same->size_bytes += item.size_bytes;
      same->file_bytes += item.file_bytes;
    }
  };
  for (const MemoryItem& item : engine.memory()) add(item);
  for (const MemoryItem& item : session.memory()) add(item);
  return total;
}

std::string answer_notes(const Engine& engine, const Session& session, const Answer& answer, bool full) {
  const ModelInfo& info = engine.info();
  const GenerateResult& result = answer.result;
  std::string out = fmt::format("\nmodel    {} ({}, {}, {})\n", one_line(info.path), one_line(info.architecture),
                                info.file_type, size_text(info.file_bytes));
  out += fmt::format("load     {:.3f} s\n", answer.load_seconds);
  out += prompt_line(answer);
  out += decode_line(result);
  const std::vector<MemoryItem> memory = total_memory(engine, session);
  out += full ? "memory\n" + memory_table(memory) : "memory   " + memory_line(memory) + "\n";
  out += placement_line(engine);
  if (full) out += placement_table(engine);
  out += fmt::format("finish   {}; seed {}, context {} of {} tokens", finish_text(result.finish), result.seed,
                     session.history().size(), session.n_ctx());
  return out;
}

nlohmann::json answer_json(const Engine& engine, const Session& session, const Answer& answer) {
  const ModelInfo& info = engine.info();
  const GenerateResult& result = answer.result;
  return {
      {"model",
       {{"path", info.path},
        {"name", info.name},
        {"architecture", info.architecture},
        {"file_type", info.file_type},
        {"file_bytes", info.file_bytes}}},
      {"prompt", answer.prompt},
      {"chat_format", answer.chat_format ? "chatml" : "raw"},
      {"text", result.text},
      {"ids", result.tokens},
      {"finish_reason", finish_reason_name(result.finish)},
      {"seed", result.seed},
      {"n_ctx", session.n_ctx()},
      {"timings", timings_json(answer)},
      {"memory", memory_json(total_memory(engine, session))},
      {"backend", engine.backend()},
      {"kernels", engine.kernels()},
      {"n_threads", engine.n_threads()},
      {"placement", placement_json(engine)},
      {"notes", answer.notes},
      {"version", version()},
  };
}

}  // namespace kz::cli
