// Options shared by the commands: one function per kind of value, one struct per group. Numbers are read with
// std::from_chars, so that no locale can change what 0.7 means.
#pragma once

#include <kazeia/engine.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace kz::cli {

// What the engine accepts; the flags refuse the rest before a model is loaded.
constexpr int64_t kMaxContext = int64_t{1} << 24;
constexpr int64_t kMaxBatch = int64_t{1} << 14;
constexpr int64_t kMaxThreads = 512;
constexpr int64_t kMaxPredict = INT32_MAX;

/// Help text: "-c,--ctx-size N   what it is", without CLI11's notes about environment and defaults.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_description(const CLI::App* app) const override;
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

/// Parses a whole number / a real number; throws CLI::ValidationError naming `option`.
int64_t parse_integer(const std::string& option, const std::string& text, int64_t lowest, int64_t highest);
double parse_real(const std::string& option, const std::string& text);
/// true/1/on/enabled/yes or false/0/off/disabled/no; throws CLI::ValidationError.
bool parse_switch(const std::string& text);

/// Every option has an environment twin: KAZEIA_ARG_ and its first long name ("--ctx-size": KAZEIA_ARG_CTX_SIZE).
/// Each adds an option that takes one word and writes `target`; given twice, the last counts. `names` as CLI11 wants
/// them ("-c,--ctx-size"), `value` is what the help shows behind them ("N").
CLI::Option* add_integer(CLI::App& app, const std::string& names, const std::string& value, int64_t& target,
                         int64_t lowest, int64_t highest, const std::string& help);
CLI::Option* add_real(CLI::App& app, const std::string& names, const std::string& value, double& target,
                      const std::string& help);
CLI::Option* add_text(CLI::App& app, const std::string& names, const std::string& value, std::string& target,
                      const std::string& help);
/// May be given several times; collects.
CLI::Option* add_texts(CLI::App& app, const std::string& names, const std::string& value,
                       std::vector<std::string>& target, const std::string& help);
/// A flag without a value; "!--no-x" among the names is its opposite.
CLI::Option* add_switch(CLI::App& app, const std::string& names, bool& target, const std::string& help);
/// Whether the option's value comes from its environment twin and not from the command line.
bool from_environment(const CLI::Option& option);

/// Whether `option` of subcommand `command` of `app` takes its next word as a value (see translate_arguments()).
bool takes_value(const CLI::App& app, const std::string& command, const std::string& option);

/// -m, and for commands that compute: backend, kernel table, threads.
struct ModelFlags {
  std::string path;
  std::string backend = "cpu";
  std::string isa = "auto";
  std::string activations = "q8";
  std::string packed_cache;
  int64_t n_threads = 0;
  std::vector<int> cores;
  void add_path(CLI::App& app);
  void add_compute(CLI::App& app);
  void add_cores(CLI::App& app);
  ModelSource source() const;  ///< throws Error when no model was given
  EngineOptions engine_options() const;
};

/// -c, -b, -ctk, -ctv.
struct SessionFlags {
  SessionOptions options;
  void add(CLI::App& app, const std::string& context_help);
};

struct SamplerFlags {
  SamplerParams params;
  void add(CLI::App& app);
};

/// -p, -f, -e: where a text comes from.
struct TextFlags {
  std::string prompt, file;
  bool has_prompt = false, has_file = false;
  const CLI::Option* prompt_option = nullptr;
  const CLI::Option* file_option = nullptr;
  bool escape = true;
  void add(CLI::App& app, const std::string& what);
  bool given() const { return has_prompt || has_file; }
  /// The text; what was typed counts before what the environment says: -p with its escapes resolved (unless
  /// --no-escape), or the file's bytes as they are.
  std::string read() const;
};

}  // namespace kz::cli
