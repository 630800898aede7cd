#include "apps/cli/flags.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>

namespace kz::cli {
namespace {

/// Sets an environment variable for one scope.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
};

struct RunLike {
  CLI::App app;
  ModelFlags model;
  SamplerFlags sampler;
  TextFlags text;
  RunLike() {
    model.add_path(app);
    sampler.add(app);
    text.add(app, "The text");
  }
  void parse(std::vector<std::string> words) { app.parse(std::vector<std::string>(words.rbegin(), words.rend())); }
};

TEST(ParseReal, IsTheSameInEveryLocale) {
  // Where the system has no locale with a decimal comma, this still shows the C locale's reading.
  const bool has_comma = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
  EXPECT_EQ(parse_real("--temp", "0.7"), 0.7);
  EXPECT_THROW(parse_real("--temp", "0,7"), CLI::ValidationError);
  std::setlocale(LC_ALL, "C");
  if (!has_comma) GTEST_LOG_(INFO) << "no de_DE.UTF-8 here; tests/cli makes one for the program itself";
}

TEST(ParseInteger, IsDecimalAndBounded) {
  EXPECT_EQ(parse_integer("-n", "010", 0, 100), 10);
  EXPECT_THROW(parse_integer("-n", "101", 0, 100), CLI::ValidationError);
  EXPECT_THROW(parse_integer("-n", "1 ", 0, 100), CLI::ValidationError);
  EXPECT_THROW(parse_integer("-n", "+1", 0, 100), CLI::ValidationError);
}

TEST(Environment, SetsAFlagThatWasNotTyped) {
  const Environment model("KAZEIA_ARG_MODEL", "from-environment.gguf");
  const Environment temp("KAZEIA_ARG_TEMP", "0.25");
  const Environment eos("KAZEIA_ARG_IGNORE_EOS", "enabled");
  RunLike flags;
  flags.parse({"--temp", "0.5"});
  EXPECT_EQ(flags.model.path, "from-environment.gguf");
  EXPECT_EQ(flags.sampler.params.temperature, 0.5);
  EXPECT_TRUE(flags.sampler.params.ignore_eos);
}

TEST(Environment, OffAndNonsense) {
  {
    const Environment escape("KAZEIA_ARG_ESCAPE", "disabled");
    RunLike flags;
    flags.parse({});
    EXPECT_FALSE(flags.text.escape);
  }
  const Environment eos("KAZEIA_ARG_IGNORE_EOS", "perhaps");
  RunLike flags;
  EXPECT_THROW(flags.parse({}), CLI::ValidationError);
}

TEST(TextFlags, EscapesAreOnByDefaultForTypedText) {
  RunLike on;
  on.parse({"-p", "a\\nb"});
  EXPECT_EQ(on.text.read(), "a\nb");
  RunLike off;
  off.parse({"--no-escape", "-p", "a\\nb"});
  EXPECT_EQ(off.text.read(), "a\\nb");
}

TEST(TextFlags, WantsExactlyOneSource) {
  RunLike none;
  none.parse({});
  EXPECT_THROW(none.text.read(), Error);
  RunLike both;
  both.parse({"-p", "x", "-f", "y"});
  EXPECT_THROW(both.text.read(), Error);
  RunLike missing;
  missing.parse({"-f", "/nowhere/at/all"});
  EXPECT_THROW(missing.text.read(), Error);
}

TEST(TextFlags, WhatWasTypedCountsBeforeTheEnvironment) {
  const Environment prompt("KAZEIA_ARG_PROMPT", "from the environment");
  RunLike alone;
  alone.parse({});
  EXPECT_EQ(alone.text.read(), "from the environment");
  RunLike file;
  file.parse({"-f", "/dev/null"});
  EXPECT_EQ(file.text.read(), "");
  const Environment both("KAZEIA_ARG_FILE", "/nowhere");
  RunLike typed;
  typed.parse({"-p", "typed"});
  EXPECT_EQ(typed.text.read(), "typed");
}

TEST(TextFlags, AnEmptyPromptIsAPrompt) {
  RunLike flags;
  flags.parse({"-p", ""});
  EXPECT_TRUE(flags.text.given());
  EXPECT_EQ(flags.text.read(), "");
}

}  // namespace
}  // namespace kz::cli
