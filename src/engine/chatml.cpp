// One question as a ChatML prompt.
#include "engine/engine_core.h"

namespace kz {
namespace {

constexpr std::string_view kClosedThink = "<think>\n\n</think>\n\n";
constexpr std::string_view kOpenThink = "<think>\n";

/// What the template writes behind "assistant\n" when it asks for an answer. A template is a program; these are the
/// two forms in use: Qwen3 leaves the opening to the model, Qwen3.5 ends with an opened block. Both close an empty
/// block to switch reasoning off.
std::string_view think_block(std::string_view chat_template, bool reasoning) {
  if (chat_template.find("<think>") == std::string_view::npos) return {};
  if (!reasoning) return kClosedThink;
  const size_t tail = chat_template.rfind("add_generation_prompt");
  if (tail == std::string_view::npos) return {};
  for (const std::string_view literal : {"'<think>\\n'", "\"<think>\\n\""}) {
    if (chat_template.find(literal, tail) != std::string_view::npos) return kOpenThink;
  }
  return {};
}

/// Turns, each as <|im_start|> role newline text <|im_end|> newline.
class ChatmlPrompt {
 public:
  ChatmlPrompt(const Tokenizer& tokenizer, int32_t start, int32_t end)
      : tokenizer_(tokenizer), start_(start), end_(end) {
    if (tokenizer.adds_bos() && tokenizer.bos() >= 0) ids_.push_back(tokenizer.bos());
  }

  void add_turn(std::string_view role, std::string_view text) {
    ids_.push_back(start_);
    // Role and text are encoded as one stretch, as they would be in a rendered prompt.
    append(std::string(role) + "\n" + std::string(text), false);
    ids_.push_back(end_);
    append("\n", false);
  }

  std::vector<int32_t> open_answer(std::string_view think) && {
    ids_.push_back(start_);
    append("assistant\n" + std::string(think), true);
    return std::move(ids_);
  }

 private:
  void append(std::string_view text, bool parse_special) {
    const std::vector<int32_t> more = tokenizer_.encode(text, {parse_special, false});
    ids_.insert(ids_.end(), more.begin(), more.end());
  }

  const Tokenizer& tokenizer_;
  int32_t start_, end_;
  std::vector<int32_t> ids_;
};

}  // namespace

std::vector<int32_t> Engine::chatml_prompt(std::string_view text, std::string_view system, bool reasoning) const {
  const EngineCore& core = *impl_->core;
  if (!core.tokenizer) return {};
  const int32_t start = core.tokenizer->find("<|im_start|>");
  const int32_t end = core.tokenizer->find("<|im_end|>");
  if (start < 0 || end < 0) return {};
  ChatmlPrompt prompt(*core.tokenizer, start, end);
  if (!system.empty()) prompt.add_turn("system", system);
  prompt.add_turn("user", text);
  return std::move(prompt).open_answer(think_block(core.info.chat_template, reasoning));
}

}  // namespace kz
