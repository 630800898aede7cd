"""Command lines, good and bad."""
import os
import shutil
import subprocess
import unittest

from program import ProgramTest, f16_model, model, run

COMMANDS = ("run", "tokenize", "inspect", "logits", "perplexity", "quantize")


class HelpTest(ProgramTest):
    def test_help_names_every_command_and_shows_examples(self):
        for flag in ("--help", "-h"):
            text = self.succeed(flag).stdout.decode()
            for command in COMMANDS:
                self.assertRegex(text, rf"(?m)^  {command}\s")
            self.assertIn("Examples:", text)

    def test_each_command_explains_itself(self):
        for command in COMMANDS:
            done = self.succeed(command, "--help")
            self.assertEqual(done.stderr, b"")
            text = done.stdout.decode()
            self.assertIn("Example", text)
            self.assertTrue(all(len(line) <= 130 for line in text.split("\n")), text)

    def test_escape_default_is_documented(self):
        self.assertRegex(self.succeed("run", "--help").stdout.decode(), r"--no-escape[^-]*\(default: on\)")

    def test_version(self):
        self.assertRegex(self.succeed("--version").stdout.decode(), r"\Akazeia \d+\.\d+\.\d+[^\n]*\n\Z")

    def test_list_isa_needs_no_model(self):
        for arguments in (("--list-isa",), ("run", "--list-isa")):
            self.assertIn(b"runs on this machine", self.succeed(*arguments).stdout)


class BadArgumentsTest(ProgramTest):
    def test_command_line(self):
        for needle, arguments in (
            ("no command given", ()),
            ("fly", ("fly",)),
            ("--frobnicate", ("run", "--frobnicate")),
            ("--frobnicate", ("--frobnicate", "run")),
            ("no model given", ("run", "-p", "x")),
            ("no model given", ("inspect",)),
            ("no text given", ("run", "-m", model())),
            ("not both", ("run", "-m", model(), "-p", "x", "-f", "y")),
            ("whole number", ("run", "-m", model(), "-p", "x", "-n", "ten")),
            ("whole number", ("run", "-m", model(), "-p", "x", "-t", "1.5")),
            ("out of range", ("run", "-m", model(), "-p", "x", "-n", "-2")),
            ("out of range", ("run", "-m", model(), "-p", "x", "-s", "99999999999999999999")),
            ("expected a number", ("run", "-m", model(), "-p", "x", "--temp", "0,7")),
            ("expected a number", ("run", "-m", model(), "-p", "x", "--temp", "nan")),
            ("--color", ("run", "-m", model(), "-p", "x", "--color=purple")),
            ("--reasoning", ("run", "-m", model(), "-p", "x", "-rea", "perhaps")),
            ("--raw", ("run", "-m", model(), "-p", "x", "--raw", "-sys", "Be short.")),
            ("--raw", ("run", "-m", model(), "-p", "x", "--raw", "-rea", "on")),
            ("unknown flag -hf", ("run", "-hf", "somebody/model", "-p", "x")),
            ("1 to 16384", ("run", "-m", model(), "-p", "x", "-b", "16385")),
            ("0 to 16777216", ("run", "-m", model(), "-p", "x", "-c", "16777217")),
            ("0 to 512", ("run", "-m", model(), "-p", "x", "-t", "513")),
            ("-1 to 2147483647", ("run", "-m", model(), "-p", "x", "-n", "2147483648")),
            ("--ids", ("logits", "-m", model(), "-o", "x")),
            ("-o", ("logits", "-m", model(), "--ids", "x")),
            ("TYPE", ("quantize", "a", "b")),
        ):
            with self.subTest(arguments=arguments):
                self.fail_with(needle, *arguments)

    def test_values_that_the_engine_refuses(self):
        for needle, arguments in (
            ("temperature", ("--temp", "-1")),
            ("top-p", ("--top-p", "1.5")),
            ("top-p", ("--top-p", "-0.1")),
            ("min-p", ("--min-p", "2")),
            ("q9_9", ("-ctk", "q9_9")),
            ("q9_9", ("-ctv", "q9_9")),
            ("warp", ("--isa", "warp")),
            ("abacus", ("--backend", "abacus")),
            ("stop", ("--stop", "")),
            ("empty", ("--raw", "-p", "")),
        ):
            with self.subTest(arguments=arguments):
                self.fail_with(needle, "run", "-m", model(), "-p", "x", *arguments)

    def test_environment_twin_and_its_errors(self):
        self.succeed("inspect", env={"KAZEIA_ARG_MODEL": model()})
        self.fail_with("--temp", "run", "-p", "x", env={"KAZEIA_ARG_MODEL": model(), "KAZEIA_ARG_TEMP": "hot"})
        # What is typed wins.
        self.fail_with("absent.gguf", "inspect", "-m", "absent.gguf", env={"KAZEIA_ARG_MODEL": model()})


class LocaleTest(ProgramTest):
    """B163: numbers are the same in every locale."""

    def german(self):
        if shutil.which("localedef") is None:
            return None
        made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", self.path("de_DE.UTF-8")],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not os.path.isdir(self.path("de_DE.UTF-8")):
            return None
        self.assertIn(made.returncode, (0, 1))  # 1: made, with warnings
        return {"LOCPATH": self.folder, "LC_ALL": "de_DE.UTF-8"}

    def test_decimal_comma_locale(self):
        german = self.german()
        if german is None:
            self.skipTest("no de_DE locale can be made here (Debian package locales)")
        # The locale works: printf of the shell writes a comma with it.
        comma = subprocess.run(["/bin/bash", "-c", "printf %.1f 1"], stdout=subprocess.PIPE,
                               env={**os.environ, **german})
        self.assertEqual(comma.stdout, b"1,0")
        for arguments in (("inspect", "-m", model()), ("inspect", "-m", model(), "--json")):
            self.assertEqual(self.succeed(*arguments, env=german).stdout, self.succeed(*arguments).stdout)
        typed = ("run", "-m", f16_model(), "-p", "What is the capital of Peru?", "--temp", "0.7", "-s", "3", "-n", "8")
        self.assertEqual(self.succeed(*typed, env=german).stdout, self.succeed(*typed).stdout)
        figures = run(*typed, env=german).stderr.decode()
        self.assertRegex(figures, r"\d\.\d tok/s")
        self.assertNotRegex(figures, r"\d,\d")


if __name__ == "__main__":
    unittest.main()
