"""The program under test and the files it is tested with."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

_settings = {}


def configure(binary, source_folder, sanitized):
    """`sanitized`: the program was built with a sanitizer, which takes address space and keeps freed memory."""
    _settings["binary"], _settings["source"] = os.path.abspath(binary), os.path.abspath(source_folder)
    _settings["sanitized"] = sanitized


def sanitized():
    return _settings["sanitized"]


def binary():
    return _settings["binary"]


def source_file(*parts):
    return os.path.join(_settings["source"], *parts)


def model():
    return source_file("models", "kazeia-tiny-q4_0.gguf")


def f16_model():
    return source_file("tests", "data", "tiny", "kazeia-tiny-f16.gguf")


def environment(extra=None):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KAZEIA_ARG_")}
    return {**clean, **(extra or {})}


def run(*arguments, env=None, **options):
    """Runs `kazeia ARGUMENTS`; stdin is closed unless given. Returns the finished process, output as bytes."""
    if "stdin" not in options and "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    return subprocess.run([binary(), *arguments], stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE,
                          env=environment(env), timeout=600, **options)


class ProgramTest(unittest.TestCase):
    """A scratch folder and the checks that many tests share."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="kz-cli-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def succeed(self, *arguments, **options):
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode("utf-8", "replace"))
        return done

    def succeed_json(self, *arguments, **options):
        return json.loads(self.succeed(*arguments, "--json", **options).stdout)

    def fail_with(self, needle, *arguments, **options):
        """Expects exit status 1, nothing on stdout and one line on stderr that holds `needle`."""
        done = run(*arguments, **options)
        text = done.stderr.decode("utf-8", "replace")
        self.assertEqual(done.returncode, 1, f"{arguments}: {text}")
        self.assertEqual(done.stdout or b"", b"", arguments)
        self.assertRegex(text, r"\Akazeia: [^\n]+\n\Z", arguments)
        self.assertIn(needle, text, arguments)
        return text
