#include "apps/cli/arguments.h"

#include "apps/cli/commands.h"
#include "apps/cli/flags.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace kz::cli {
namespace {

using Words = std::vector<std::string>;

/// A command line app with every command, parsed but not run.
struct Parsed {
  CLI::App app;
  Action action;

  Parsed() {
    add_run(app, action);
    add_tokenize(app, action);
    add_inspect(app, action);
    add_logits(app, action);
    add_perplexity(app, action);
    add_quantize(app, action);
    app.require_subcommand(0, 1);
  }

  void parse(const Words& words) {
    Words args = translate_arguments(words, [this](const std::string& command, const std::string& option) {
      return takes_value(app, command, option);
    });
    app.parse(Words(args.rbegin(), args.rend()));
  }

  const CLI::App& command(const std::string& name) { return *app.get_subcommand(name); }
};

Words translate(const Words& words) {
  return translate_arguments(words, [](const std::string&, const std::string& option) { return option == "-p"; });
}

TEST(TranslateArguments, RewritesEverySpelling) {
  ASSERT_FALSE(short_spellings().empty());
  for (const ShortSpelling& spelling : short_spellings()) {
    const std::string typed(spelling.typed), long_name(spelling.long_name);
    EXPECT_EQ(translate({"run", typed, "x"}), (Words{"run", long_name, "x"}));
    EXPECT_EQ(translate({"run", typed + "=x"}), (Words{"run", long_name + "=x"}));
  }
}

TEST(TranslateArguments, LeavesValuesAlone) {
  EXPECT_EQ(translate({"run", "-p", "-sys", "-sys", "x"}), (Words{"run", "-p", "-sys", "--system-prompt", "x"}));
  EXPECT_EQ(translate({"run", "--", "-sys"}), (Words{"run", "--", "-sys"}));
  EXPECT_EQ(translate({"run", "-system", "x"}), (Words{"run", "-system", "x"}));
}

/// Where a value of each option comes from; the words suit any option of that name.
std::string value_for(const std::string& name) {
  static const std::set<std::string> kReal = {"temp", "temperature", "top-p", "min-p"};
  static const std::set<std::string> kWord = {"reasoning", "color"};
  if (kReal.count(name) > 0) return "0.5";
  return kWord.count(name) > 0 ? "on" : "3";
}

/// Every way to type one option (B161).
std::vector<Words> forms_of(const CLI::Option& option) {
  const bool takes = option.get_items_expected_min() > 0 && option.get_type_size_min() > 0;
  const std::string value = value_for(option.get_lnames().empty() ? "" : option.get_lnames()[0]);
  std::vector<Words> forms;
  for (const std::string& name : option.get_lnames()) {
    if (!takes) {
      forms.push_back({"--" + name});
    } else {
      forms.push_back({"--" + name, value});
      forms.push_back({"--" + name + "=" + value});
    }
    for (const ShortSpelling& spelling : short_spellings()) {
      if (spelling.long_name != "--" + name) continue;
      forms.push_back(takes ? Words{std::string(spelling.typed), value} : Words{std::string(spelling.typed)});
      if (takes) forms.push_back({std::string(spelling.typed) + "=" + value});
    }
  }
  for (const std::string& name : option.get_snames()) {
    if (!takes) {
      forms.push_back({"-" + name});
    } else {
      forms.push_back({"-" + name, value});
      forms.push_back({"-" + name + value});
    }
  }
  return forms;
}

TEST(CommandLine, EveryFlagInEveryFormLeavesTheNextFlagAlone) {
  int n_forms = 0;
  for (const std::string name : {"run", "tokenize", "inspect", "logits", "perplexity"}) {
    const Parsed names;
    for (const CLI::Option* option : names.app.get_subcommand(name)->get_options()) {
      if (option->get_name().find("help") != std::string::npos) continue;
      for (const Words& form : forms_of(*option)) {
        const bool is_model = form[0].starts_with("-m") || form[0].starts_with("--model");
        const Words next = is_model ? Words{"--json"} : Words{"-m", "x.gguf"};
        Words words = {name};
        words.insert(words.end(), form.begin(), form.end());
        words.insert(words.end(), next.begin(), next.end());
        Parsed parsed;
        ASSERT_NO_THROW(parsed.parse(words)) << name << " " << form[0];
        const CLI::Option* seen = parsed.command(name).get_option_no_throw(option->get_name(false, false));
        ASSERT_NE(seen, nullptr) << option->get_name();
        EXPECT_EQ(seen->count(), 1u) << name << " " << form[0];
        EXPECT_EQ(parsed.command(name).get_option(is_model ? "--json" : "--model")->count(), 1u) << form[0];
        ++n_forms;
      }
    }
  }
  EXPECT_GT(n_forms, 150);
}

TEST(CommandLine, OptionalValueDoesNotEatTheNextFlag) {
  Parsed parsed;
  parsed.parse({"run", "--color", "-m", "x.gguf"});
  EXPECT_EQ(parsed.command("run").get_option("--model")->as<std::string>(), "x.gguf");
}

TEST(CommandLine, ValuesMayBeginWithADash) {
  Parsed parsed;
  parsed.parse({"run", "-p", "-m", "--seed", "-1", "-n", "-1", "-m", "--odd.gguf", "--stop", "--", "-r", "[x]"});
  EXPECT_EQ(parsed.command("run").get_option("--prompt")->as<std::string>(), "-m");
  EXPECT_EQ(parsed.command("run").get_option("--model")->as<std::string>(), "--odd.gguf");
  EXPECT_EQ(parsed.command("run").get_option("--stop")->as<Words>(), (Words{"--", "[x]"}));
}

TEST(CommandLine, TheLastOfTwoCounts) {
  Parsed parsed;
  parsed.parse({"run", "-n", "1", "-n", "2", "--escape", "--no-escape"});
  EXPECT_EQ(parsed.command("run").get_option("--predict")->as<std::string>(), "2");
  EXPECT_EQ(parsed.command("run").get_option("--escape")->as<std::string>(), "false");
}

TEST(CommandLine, RefusesWhatItDoesNotKnow) {
  for (const Words& words : std::vector<Words>{{"run", "--frobnicate"},
                                               {"run", "stray"},
                                               {"fly"},
                                               {"run", "-n"},
                                               {"run", "-n", "ten"},
                                               {"run", "-n", "1.5"},
                                               {"run", "-n", "0x10"},
                                               {"run", "-n", "-2"},
                                               {"run", "-n", ""},
                                               {"run", "-c", "99999999999999999999"},
                                               {"run", "--temp", "0,7"},
                                               {"run", "--temp", "nan"},
                                               {"run", "--temp", "1e999"},
                                               {"run", "--ignore-eos=perhaps"},
                                               {"run", "-b", "0"},
                                               {"quantize", "a", "b"}}) {
    Parsed parsed;
    EXPECT_THROW(parsed.parse(words), CLI::ParseError) << words.back();
  }
}

}  // namespace
}  // namespace kz::cli
