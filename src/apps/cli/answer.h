// What `kazeia run` reports about one answer, as text and as JSON.
#pragma once

#include <kazeia/engine.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace kz::cli {

struct Answer {
  GenerateResult result;
  std::string prompt;              ///< the user's text
  bool chat_format = false;        ///< the prompt was wrapped as a chat message
  std::vector<std::string> notes;  ///< what the user should know about the file and the way it was used
  double load_seconds = 0;         ///< opening the model and the session
  double first_text_seconds = -1;  ///< from the start of generate() to the first text; -1: there was none
};

/// Memory of engine and session, one item per kind.
std::vector<MemoryItem> total_memory(const Engine& engine, const Session& session);

/// The statistics after an answer, several lines; with `full`, memory and kernels as tables.
std::string answer_notes(const Engine& engine, const Session& session, const Answer& answer, bool full);

/// Everything as one object (`kazeia run --json`).
nlohmann::json answer_json(const Engine& engine, const Session& session, const Answer& answer);

}  // namespace kz::cli
