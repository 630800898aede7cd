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
  Words notes;

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
    const auto takes = [this](const std::string& command, const std::string& option) {
      return takes_value(app, command, option);
    };
    Words args = translate_arguments(words, takes, notes);
    app.parse(Words(args.rbegin(), args.rend()));
  }

  const CLI::App& command(const std::string& name) { return *app.get_subcommand(name); }
};

Words translate(const Words& words) {
  Words notes;
  return translate_arguments(
      words, [](const std::string&, const std::string& option) { return option == "-p"; }, notes);
}

TEST(TranslateArguments, RewritesEverySpelling) {
  ASSERT_FALSE(short_spellings().empty());
  for (const ShortSpelling& spelling : short_spellings()) {
    const std::string typed(spelling.typed), long_name(spelling.long_name);
    Words notes;
    const auto words = [&](const Words& args) {  // of a command that has the option (others may ignore its name)
      return translate_arguments(
          args, [&](const std::string&, const std::string& option) { return option == long_name; }, notes);
    };
    EXPECT_EQ(words({"bench", typed, "x"}), (Words{"bench", long_name, "x"}));
    EXPECT_EQ(words({"bench", typed + "=x"}), (Words{"bench", long_name + "=x"}));
    EXPECT_TRUE(notes.empty());
  }
}

TEST(TranslateArguments, LeavesValuesAlone) {
  EXPECT_EQ(translate({"run", "-p", "-sys", "-sys", "x"}), (Words{"run", "-p", "-sys", "--system-prompt", "x"}));
  EXPECT_EQ(translate({"run", "--", "-sys"}), (Words{"run", "--", "-sys"}));
}

TEST(TranslateArguments, RefusesLongerNamesBehindOneDash) {
  for (const std::string word : {"-system", "-hf", "-fast", "-ptext", "-no-perf", "-mli"}) {
    try {
      translate({"run", word, "x"});
      ADD_FAILURE() << word;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("unknown flag " + word), std::string::npos) << error.what();
    }
  }
  for (const std::string word : {"-n5", "-m/x.gguf", "-m./x.gguf", "-e", "-", "-1"}) {
    EXPECT_EQ(translate({"run", word}), (Words{"run", word}));
  }
}

TEST(TranslateArguments, LeavesOutWhatHasNoEffectAndSaysSo) {
  const Words rest = {"-m", "x.gguf"};
  ASSERT_FALSE(ignored_flags().empty());
  for (const IgnoredFlag& flag : ignored_flags()) {
    for (const std::string_view name : {flag.short_name, flag.long_name}) {
      std::vector<Words> forms = {{std::string(name)}, {std::string(name), "1"}, {std::string(name) + "=1"}};
      if (flag.value == IgnoredFlag::none) forms.resize(1);
      if (flag.value == IgnoredFlag::one) forms.erase(forms.begin());
      for (Words form : forms) {
        Parsed parsed;
        form.insert(form.begin(), "run");
        form.insert(form.end(), rest.begin(), rest.end());
        ASSERT_NO_THROW(parsed.parse(form)) << form[1];
        EXPECT_EQ(parsed.command("run").get_option("--model")->as<std::string>(), "x.gguf") << form[1];
        ASSERT_EQ(parsed.notes.size(), 1u);
        EXPECT_TRUE(parsed.notes[0].starts_with(std::string(name) + " has no effect")) << parsed.notes[0];
      }
    }
  }
}

TEST(CommandLine, EveryOptionHasAnEnvironmentTwin) {
  const Parsed parsed;
  for (const CLI::App* command : parsed.app.get_subcommands([](const CLI::App*) { return true; })) {
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_lnames().empty() || option->get_lnames()[0] == "help") continue;
      EXPECT_TRUE(option->get_envname().starts_with("KAZEIA_ARG_")) << command->get_name() << " " << option->get_name();
    }
  }
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
                                               {"run", "-b", "16385"},
                                               {"run", "-t", "513"},
                                               {"run", "-c", "16777217"},
                                               {"run", "-n", "2147483648"},
                                               {"quantize", "a", "b", "Q8_0", "-t", "513"},
                                               {"quantize", "a", "b"}}) {
    Parsed parsed;
    EXPECT_THROW(parsed.parse(words), CLI::ParseError) << words.back();
  }
}

}  // namespace
}  // namespace kz::cli
