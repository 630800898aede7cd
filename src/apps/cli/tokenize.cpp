// `kazeia tokenize`: text to token ids.
#include "apps/cli/commands.h"
#include "apps/cli/console.h"
#include "apps/cli/flags.h"
#include "apps/cli/text.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

namespace kz::cli {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  kazeia tokenize -m model.gguf -p \"Hello, world\"\n"
    "  kazeia tokenize -m model.gguf -f text.txt --json";

struct TokenizeFlags {
  ModelFlags model;
  TextFlags text;
  TokenizeOptions options;
  bool json = false;
};

int run_tokenize(const TokenizeFlags& flags) {
  const std::string text = flags.text.read();
  const std::unique_ptr<Vocabulary> vocabulary = Vocabulary::open(flags.model.source());
  const std::vector<int32_t> ids = vocabulary->tokenize(text, flags.options);
  if (flags.json) {
    print_json({{"ids", ids}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"id", "piece"}};
  for (const int32_t id : ids) {
    rows.push_back({std::to_string(id), "'" + printable(vocabulary->detokenize(std::array{id})) + "'"});
  }
  write_out(fmt::format("{}{} tokens\n", table(rows, {0}), ids.size()));
  return 0;
}

}  // namespace

void add_tokenize(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("tokenize", "Turn text into token ids");
  command->footer(kFooter);
  const auto flags = std::make_shared<TokenizeFlags>();
  flags->model.add_path(*command);
  flags->text.add(*command, "The text");
  add_switch(*command, "--parse-special,!--no-parse-special", flags->options.parse_special,
             "Read control tokens in the text as such (default: they are ordinary text)");
  add_switch(*command, "--add-special,!--no-add-special", flags->options.add_special,
             "Add the begin and end tokens that the vocabulary asks for (default: off)");
  add_switch(*command, "--json", flags->json, "Print {\"ids\": [...]}");
  command->callback([flags, &action] { action = [flags] { return run_tokenize(*flags); }; });
}

}  // namespace kz::cli
