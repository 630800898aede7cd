// `kazeia run`: one prompt, one answer, streamed.
#include "apps/cli/answer.h"
#include "apps/cli/commands.h"
#include "apps/cli/console.h"
#include "apps/cli/flags.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/program.h"
#include "apps/cli/terminal.h"
#include "apps/cli/text.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

namespace kz::cli {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  kazeia run -m model.gguf -p \"What is the capital of Peru?\"\n"
    "  kazeia run -m model.gguf -p \"Tell me a story.\" -n 200 --temp 0.7 --seed 1\n"
    "  kazeia run -m model.gguf -sys \"You answer in French.\" -f question.txt\n"
    "  kazeia run -m model.gguf --raw -p \"Once upon a time\" -n 50\n"
    "  kazeia run -m model.gguf -p \"Hello\" --json > answer.json\n"
    "\n"
    "The answer goes to standard output, the statistics go to standard error.\n"
    "Ctrl-C stops the answer and prints the statistics; a second Ctrl-C ends the program at once.";

struct RunFlags {
  ModelFlags model;
  SessionFlags session;
  SamplerFlags sampler;
  TextFlags text;
  std::string system, reasoning = "off", color = "auto";
  std::vector<std::string> stop;
  int64_t n_predict = -1;
  const CLI::Option* system_option = nullptr;
  const CLI::Option* reasoning_option = nullptr;
  bool raw = false, json = false, verbose = false, perf = true, list_isa = false, special = false;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// "auto" (off, until a model's own template decides), or any word of parse_switch().
bool read_reasoning(const std::string& word) {
  if (word == "auto") return false;
  try {
    return parse_switch(word);
  } catch (const CLI::ValidationError& error) {
    throw Error(ErrorCode::bad_argument, fmt::format("--reasoning: {}", error.what()));
  }
}

/// A text that is continued as it stands has no place for what only a chat message has. What was typed is refused, so
/// that nothing is dropped unseen; what the environment says about every run gives way.
void check_raw(RunFlags& flags) {
  if (!flags.raw) return;
  const auto drop = [](std::string& value, const CLI::Option& option, const char* name) {
    if (!from_environment(option)) {
      throw Error(ErrorCode::bad_argument,
                  fmt::format("--raw continues the text as it stands, so {} cannot be used with it", name));
    }
    value.clear();
  };
  if (!flags.system.empty()) drop(flags.system, *flags.system_option, "-sys");
  if (read_reasoning(flags.reasoning)) {
    drop(flags.reasoning, *flags.reasoning_option, "-rea");
    flags.reasoning = "off";
  }
}

/// The default context is a wish; a model trained on less gets what it was trained on.
void fit_default_context(SessionOptions& options, bool given, int64_t n_ctx_train) {
  if (!given && n_ctx_train > 0 && options.n_ctx > n_ctx_train) options.n_ctx = n_ctx_train;
}

std::unique_ptr<Engine> load(const RunFlags& flags) {
  ProgressBar bar("Loading");
  EngineOptions options = flags.model.engine_options();
  options.progress = [&bar](double share) {
    bar.show(share);
    return !interrupt_requested();
  };
  return Engine::open(options);
}

/// The prompt's ids: as a user's message in the model's chat format, or as it stands (--raw, or no chat format).
std::vector<int32_t> prompt_ids(const Engine& engine, const RunFlags& flags, const std::string& text, bool& wrapped) {
  const std::string system = flags.text.escape ? resolve_escapes(flags.system) : flags.system;
  std::vector<int32_t> ids;
  if (!flags.raw) ids = engine.chatml_prompt(text, system, read_reasoning(flags.reasoning));
  wrapped = !ids.empty();
  if (wrapped) return ids;
  if (!flags.raw && (!system.empty() || read_reasoning(flags.reasoning))) {
    throw Error(ErrorCode::bad_argument, fmt::format("{}: no chat format for this model, so {} cannot be used",
                                                     flags.model.path, system.empty() ? "-rea" : "-sys"));
  }
  ids = engine.tokenize(text, {.parse_special = true, .add_special = true});
  if (ids.empty()) throw Error(ErrorCode::bad_argument, "the prompt is empty");
  return ids;
}

/// Where the way the model is used may not be what its user or its makers had in mind.
std::vector<std::string> usage_notes(const Engine& engine, const RunFlags& flags, bool wrapped) {
  std::vector<std::string> notes;
  const ModelInfo& info = engine.info();
  const std::string& chat = info.chat_template;
  const auto names = [&chat](const char* token) { return chat.find(token) != std::string::npos; };
  if (!flags.raw && !wrapped) {
    notes.push_back("the vocabulary has no ChatML tokens: the prompt is used as it stands, not as a chat message");
  } else if (wrapped && chat.empty()) {
    notes.push_back("the file has no chat template: the prompt is wrapped as ChatML, whose tokens it has");
  } else if (wrapped && !names("<|im_start|>")) {
    notes.push_back("the file's chat template is not ChatML, but the prompt is wrapped as ChatML");
  }
  if (wrapped && read_reasoning(flags.reasoning) && !names("<think>")) {
    notes.push_back("the file's chat template knows no reasoning: -rea has no effect");
  }
  const int64_t n_ctx = flags.session.options.n_ctx;
  if (info.n_ctx_train > 0 && n_ctx > info.n_ctx_train) {
    notes.push_back(
        fmt::format("the context holds {} tokens, but the model was trained on {}: what lies behind them "
                    "may be nonsense",
                    n_ctx, info.n_ctx_train));
  }
  return notes;
}

/// Notes on the file go with the statistics; notes on the way it is used are always shown.
void show_notes(const Engine& engine, const std::vector<std::string>& usage, const RunFlags& flags, ColorMode color) {
  if (flags.json) return;
  for (const std::string& note : usage) print_note("note: " + printable(note), color);
  if (!flags.perf) return;
  for (const std::string& note : engine.info().notes) print_note("note: " + printable(note), color);
}

GenerateOptions generate_options(const RunFlags& flags) {
  GenerateOptions options;
  options.sampler = flags.sampler.params;
  options.n_predict = flags.n_predict;
  options.show_special = flags.special;
  for (const std::string& word : flags.stop) {
    options.stop.push_back(flags.text.escape ? resolve_escapes(word) : word);
  }
  return options;
}

/// Generates, streaming to stdout unless --json; fills the answer's result and its time to first token.
void generate(Session& session, const RunFlags& flags, const std::vector<int32_t>& ids, Answer& answer) {
  GenerateOptions options = generate_options(flags);
  const auto start = std::chrono::steady_clock::now();
  char last = '\n';
  options.on_text = [&](std::string_view text) {
    if (answer.first_text_seconds < 0) answer.first_text_seconds = seconds_since(start);
    if (flags.json || text.empty()) return true;
    last = text.back();
    write_out(text);
    flush_out();
    return true;
  };
  throw_if_interrupted();  // pressed while the model was loading
  const InterruptHandler on_interrupt([&session] { session.cancel(); });
  answer.result = session.generate(ids, options);
  if (!flags.json && last != '\n') write_out("\n");
  flush_out();  // before notes and statistics, which go another way
}

int run(RunFlags& flags, bool context_given) {
  if (flags.list_isa) {
    print_kernel_tables();
    return 0;
  }
  // Everything that can be wrong with the command line is found before the model is loaded.
  const ColorMode color = parse_color(flags.color);
  check_raw(flags);
  read_reasoning(flags.reasoning);
  check(flags.sampler.params);
  const std::string text = flags.text.read();
  const ModelSource source = flags.model.source();
  if (flags.verbose) {
    SessionOptions estimated = flags.session.options;
    fit_default_context(estimated, context_given, inspect(source).n_ctx_train);
    print_note("memory to be used:\n" + memory_table(estimate_memory(flags.model.engine_options(), estimated)), color);
  }

  watch_interrupts();
  Answer answer;
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<Engine> engine = load(flags);
  fit_default_context(flags.session.options, context_given, engine->info().n_ctx_train);
  const std::unique_ptr<Session> session = engine->open_session(flags.session.options);
  answer.load_seconds = seconds_since(start);

  answer.prompt = text;
  const std::vector<int32_t> ids = prompt_ids(*engine, flags, text, answer.chat_format);
  generate(*session, flags, ids, answer);
  answer.notes = usage_notes(*engine, flags, answer.chat_format);
  show_notes(*engine, answer.notes, flags, color);  // behind the answer: a run that fails says one line only
  answer.notes.insert(answer.notes.end(), engine->info().notes.begin(), engine->info().notes.end());
  if (flags.json) print_json(answer_json(*engine, *session, answer));
  if (flags.perf && !flags.json) print_note(answer_notes(*engine, *session, answer, flags.verbose), color);
  // Ctrl-C only cut the answer short; who ends the program by another signal wants to see that it worked.
  return interrupt_exit_code() == kExitInterrupted ? kExitOk : interrupt_exit_code();
}

void add_output_flags(CLI::App& app, RunFlags& flags) {
  const std::string group = "Output";
  for (CLI::Option* option : {
           add_switch(app, "--json", flags.json, "Print one JSON object at the end instead of streaming"),
           add_switch(app, "-v,--verbose", flags.verbose, "Also show the memory estimate and where each verb ran"),
           add_switch(app, "--perf,!--no-perf", flags.perf, "Print notes on the file and statistics (default: on)"),
           add_switch(app, "--special,!--no-special", flags.special, "Show control tokens in the answer"),
           add_text(app, "--color", "on|off|auto", flags.color,
                    "Dim the statistics; auto (default): on a terminal, unless NO_COLOR is set")
               ->expected(0, 1),
           add_switch(app, "--list-isa", flags.list_isa, "List the kernel tables of this build and exit"),
       }) {
    option->group(group);
  }
}

void add_prompt_flags(CLI::App& app, RunFlags& flags) {
  flags.text.add(app, "What to answer");
  add_integer(app, "-n,--predict,--n-predict", "N", flags.n_predict, -1, kMaxPredict,
              "Most tokens to answer with; -1 (default): until the model stops");
  flags.system_option =
      add_text(app, "--system-prompt", "TEXT", flags.system, "What the model is told before the prompt");
  flags.reasoning_option = add_text(app, "--reasoning", "on|off|auto", flags.reasoning,
                                    "Let models that can think before they answer (default off; auto: off)");
  add_switch(app, "--raw,!--no-raw", flags.raw, "Continue the text; do not wrap it as a chat message");
  add_texts(app, "-r,--stop,--reverse-prompt", "TEXT", flags.stop, "End the answer at this text; may be repeated");
}

}  // namespace

void print_kernel_tables() {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, runs_here] : kernel_tables()) {
    rows.push_back({name, runs_here ? "runs on this machine" : "needs another machine"});
  }
  write_out(table(rows));
}

void add_run(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("run", "Answer a prompt");
  command->footer(kFooter);
  const auto flags = std::make_shared<RunFlags>();
  flags->model.add_path(*command);
  add_prompt_flags(*command, *flags);
  flags->session.add(*command, "Most tokens of prompt and answer together; 0: what the model allows (default 4096)");
  flags->model.add_compute(*command);
  flags->sampler.add(*command);
  add_output_flags(*command, *flags);
  command->callback([flags, command, &action] {
    const bool context_given = command->count("--ctx-size") > 0;
    action = [flags, context_given] { return run(*flags, context_given); };
  });
}

}  // namespace kz::cli
