#include "apps/cli/flags.h"

#include "apps/cli/arguments.h"
#include "apps/cli/cores.h"
#include "apps/cli/text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace kz::cli {
namespace {

constexpr size_t kHelpColumn = 34;

/// Gives the option its environment twin.
CLI::Option* with_environment(CLI::Option* option) {
  std::string name = "KAZEIA_ARG_" + option->get_lnames().at(0);
  for (char& c : name) c = c == '-' ? '_' : (c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
  return option->envname(name);
}

/// An option that takes exactly one word and may stand once; `store` gets the word.
CLI::Option* add_single(CLI::App& app, const std::string& names, const std::string& value,
                        std::function<void(const std::string&)> store, const std::string& help) {
  CLI::Option* option = with_environment(app.add_option_function<std::string>(names, std::move(store), help));
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->type_name(value);
}

std::string first_name(const std::string& names) {
  const size_t dashes = names.find("--");
  const size_t start = dashes == std::string::npos ? 0 : dashes;
  return names.substr(start, names.find(',', start) - start);
}

}  // namespace

HelpFormatter::HelpFormatter() {
  column_width(kHelpColumn);
  label("OPTIONS", "options");
  label("SUBCOMMAND", "COMMAND");
  label("Positionals", "Arguments");
}

std::string HelpFormatter::make_description(const CLI::App* app) const { return app->get_description() + "\n\n"; }

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  if (is_positional) return CLI::Formatter::make_option_name(option, is_positional);
  // A flag that is off anyway needs no --no-x in the help; one that is on does.
  const bool is_on = option->get_description().find("(default: on)") != std::string::npos;
  std::string name;
  const auto add = [&name](const std::string& form) { name += (name.empty() ? "" : ", ") + form; };
  for (const std::string& letter : option->get_snames()) add("-" + letter);
  for (const ShortSpelling& spelling : short_spellings()) {
    if (option->check_name(std::string(spelling.long_name))) add(std::string(spelling.typed));
  }
  for (const std::string& word : option->get_lnames()) {
    if (is_on || !word.starts_with("no-")) add("--" + word);
  }
  return name;
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const bool takes_word = option->get_type_size() != 0 && option->get_expected_max() > 0 && option->nonpositional();
  return takes_word ? " " + option->get_type_name() : "";
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::string help = CLI::Formatter::make_help(app, std::move(name), mode);
  for (size_t at = help.find("\n\n\n"); at != std::string::npos; at = help.find("\n\n\n")) help.erase(at, 1);
  return help;
}

int64_t parse_integer(const std::string& option, const std::string& text, int64_t lowest, int64_t highest) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range ||
      (error == std::errc() && end == text.data() + text.size() && (value < lowest || value > highest))) {
    const std::string range = highest == std::numeric_limits<int64_t>::max() ? fmt::format("at least {}", lowest)
                                                                             : fmt::format("{} to {}", lowest, highest);
    throw CLI::ValidationError(option, fmt::format("{} is out of range, expected {}", text, range));
  }
  if (error != std::errc() || end != text.data() + text.size()) {
    throw CLI::ValidationError(option, fmt::format("expected a whole number, found '{}'", text));
  }
  return value;
}

double parse_real(const std::string& option, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    throw CLI::ValidationError(option, fmt::format("expected a number such as 0.7, found '{}'", text));
  }
  return value;
}

bool parse_switch(const std::string& text) {
  for (const char* word : {"true", "1", "on", "enabled", "yes"}) {
    if (text == word) return true;
  }
  for (const char* word : {"false", "0", "off", "disabled", "no"}) {
    if (text == word) return false;
  }
  throw CLI::ValidationError(fmt::format("expected on or off, found '{}'", text));
}

CLI::Option* add_integer(CLI::App& app, const std::string& names, const std::string& value, int64_t& target,
                         int64_t lowest, int64_t highest, const std::string& help) {
  const std::string name = first_name(names);
  return add_single(
      app, names, value,
      [&target, name, lowest, highest](const std::string& text) {
        target = parse_integer(name, text, lowest, highest);
      },
      help);
}

CLI::Option* add_real(CLI::App& app, const std::string& names, const std::string& value, double& target,
                      const std::string& help) {
  const std::string name = first_name(names);
  return add_single(
      app, names, value, [&target, name](const std::string& text) { target = parse_real(name, text); }, help);
}

CLI::Option* add_text(CLI::App& app, const std::string& names, const std::string& value, std::string& target,
                      const std::string& help) {
  return add_single(app, names, value, [&target](const std::string& text) { target = text; }, help);
}

CLI::Option* add_texts(CLI::App& app, const std::string& names, const std::string& value,
                       std::vector<std::string>& target, const std::string& help) {
  CLI::Option* option = app.add_option(names, target, help);
  option->expected(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return with_environment(option)->type_name(value);
}

CLI::Option* add_switch(CLI::App& app, const std::string& names, bool& target, const std::string& help) {
  // A flag's words ("on", or what the environment says) are read here and not by CLI11, which knows fewer.
  const auto read_word = [](std::string word) { return std::string(parse_switch(word) ? "true" : "false"); };
  return with_environment(app.add_flag(names, target, help)->transform(read_word));
}

bool from_environment(const CLI::Option& option) {
  const char* value = std::getenv(option.get_envname().c_str());
  return value != nullptr && option.results() == std::vector<std::string>{value};
}

bool takes_value(const CLI::App& app, const std::string& command, const std::string& option) {
  const CLI::App* owner = &app;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name() == command) owner = sub;
  }
  const CLI::Option* found = owner->get_option_no_throw(option);
  return found != nullptr && found->get_items_expected_min() > 0 && found->get_type_size_min() > 0;
}

void ModelFlags::add_path(CLI::App& app) {
  add_text(app, "-m,--model", "FILE", path, "The model, a GGUF file (first part of a split one)");
}

void ModelFlags::add_compute(CLI::App& app) {
  add_integer(app, "-t,--threads", "N", n_threads, 0, kMaxThreads,
              "Threads to compute with; 0 (default): one per core");
  add_cores(app);
  add_text(app, "--backend", "NAME", backend,
           "cpu (default), or reference: plain loops in double, slow, to compare with");
  add_text(app, "--isa", "NAME", isa, "Kernel table of the cpu backend; auto (default) takes the best");
  add_text(app, "--activations", "TYPE", activations,
           "q8 (default): 8-bit activations on packed weights; f32: exact, much slower");
  add_text(app, "--packed-cache", "DIR", packed_cache, "Keep packed weights in DIR, to be mapped at the next start");
}

void ModelFlags::add_cores(CLI::App& app) {
  const auto take = [this](std::vector<int> parsed) { cores = std::move(parsed); };
  add_single(
      app, "-C,--cpu-mask", "HEX", [take](const std::string& text) { take(parse_core_mask("--cpu-mask", text)); },
      "One thread kept on each of these cores, a bit each (0xfc: cores 2 to 7); sets -t too");
  add_single(
      app, "--cpu-range", "LO-HI", [take](const std::string& text) { take(parse_core_range("--cpu-range", text)); },
      "The same for cores LO to HI");
}

ModelSource ModelFlags::source() const {
  if (path.empty()) throw Error(ErrorCode::bad_argument, "no model given: use -m FILE.gguf");
  ModelSource source;
  source.path = path;
  return source;
}

EngineOptions ModelFlags::engine_options() const {
  EngineOptions options;
  options.model = source();
  options.backend = backend;
  options.isa = isa;
  options.activations = activations;
  options.packed_cache = packed_cache;
  options.n_threads = static_cast<int>(n_threads);
  options.cores = cores;
  return options;
}

void SessionFlags::add(CLI::App& app, const std::string& context_help) {
  add_integer(app, "-c,--ctx-size", "N", options.n_ctx, 0, kMaxContext, context_help);
  add_integer(app, "-b,--batch-size,--batch", "N", options.n_batch, 1, kMaxBatch,
              fmt::format("Most prompt tokens in one pass (default {})", options.n_batch));
  add_text(app, "--cache-type-k", "TYPE", options.key_type,
           fmt::format("Type of cached keys: f32, f16, q8_0 (default {})", options.key_type));
  add_text(app, "--cache-type-v", "TYPE", options.value_type,
           fmt::format("Type of cached values: f32, f16, q8_0 (default {})", options.value_type));
}

void SamplerFlags::add(CLI::App& app) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::string group = "Sampling";
  for (CLI::Option* option : {
           add_integer(app, "-s,--seed", "N", params.seed, -1, kMost,
                       "Random seed; -1 (default): a new one, which is printed"),
           add_real(app, "--temp,--temperature", "X", params.temperature,
                    "Temperature; 0 takes the likeliest token (default 0.8)"),
           add_integer(app, "--top-k", "N", params.top_k, 0, kMost, "Keep the N likeliest tokens; 0: all (default 40)"),
           add_real(app, "--top-p", "X", params.top_p,
                    "Keep the likeliest tokens up to this sum (default 0.95; 1: all)"),
           add_real(app, "--min-p", "X", params.min_p,
                    "Drop tokens below this share of the likeliest (default 0.05; 0: none)"),
           add_switch(app, "--ignore-eos,!--no-ignore-eos", params.ignore_eos, "Go on where the model would stop"),
       }) {
    option->group(group);
  }
}

void TextFlags::add(CLI::App& app, const std::string& what) {
  prompt_option = add_single(
      app, "-p,--prompt", "TEXT",
      [this](const std::string& text) {
        prompt = text;
        has_prompt = true;
      },
      what);
  file_option = add_single(
      app, "-f,--file", "FILE",
      [this](const std::string& text) {
        file = text;
        has_file = true;
      },
      "Read it from a file (- is standard input); its bytes are used as they are");
  add_switch(app, "-e,--escape,!--no-escape", escape,
             "Resolve \\n \\t \\\" \\\\ \\xHH in texts of the command line (default: on)");
}

std::string TextFlags::read() const {
  if (!given()) throw Error(ErrorCode::bad_argument, "no text given: use -p TEXT or -f FILE");
  bool use_file = has_file;
  if (has_prompt && has_file) {
    use_file = from_environment(*prompt_option);
    if (use_file == from_environment(*file_option)) {
      throw Error(ErrorCode::bad_argument, "give either -p or -f, not both");
    }
  }
  if (use_file) return read_bytes(file);
  return escape ? resolve_escapes(prompt) : prompt;
}

}  // namespace kz::cli
