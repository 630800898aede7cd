"""What the system does to a program: closed and full streams, signals, limits, files that change under it."""
import array
import os
import resource
import shutil
import signal
import subprocess
import time

from program import ProgramTest, binary, environment, f16_model, model, sanitized, source_file


def shell(line, **options):
    """Runs a shell line in which "$K" is the program."""
    return subprocess.run(["/bin/sh", "-c", line], env=environment({"K": binary(), "F16": f16_model(), "Q4": model()}),
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=600, **options)


class StreamTest(ProgramTest):
    """Every command with stdout or stderr closed, full, or a pipe that nobody reads."""

    def setUp(self):
        super().setUp()
        ids = self.write("ids.i32", array.array("i", range(300, 340)).tobytes())
        rows, small = self.path("rows.f32"), self.path("small.gguf")
        text = self.write("text.txt", b"The fox ran. " * 60)
        self.commands = {
            "run": "run -m $F16 -p 'What is the capital of Peru?' --temp 0",
            "run json": "run -m $F16 -p Hello -n 2 --temp 0 --seed 1 --json",
            "tokenize": "tokenize -m $Q4 -p Hello",
            "inspect": "inspect -m $Q4",
            "inspect json": "inspect -m $Q4 --json",
            "logits": f"logits -m $Q4 --ids {ids} -o {rows}",
            "perplexity": f"perplexity -m $Q4 -f {text} -c 64",
            "quantize": f"quantize $F16 {small} Q4_0",
            "help": "--help",
            "version": "--version",
            "list": "--list-isa",
        }

    def test_a_stderr_that_takes_nothing_changes_nothing(self):
        for name, command in self.commands.items():
            wanted = shell(f'"$K" {command}')
            self.assertEqual(wanted.returncode, 0, wanted.stderr)
            for stderr in ("2>&-", "2>/dev/full", "| true"):
                line = f'"$K" {command} {stderr}'
                if "|" in stderr:  # the reader of stderr is gone before the first word
                    line = f'exec 3>&1; {{ sleep 0.1; "$K" {command} 2>&1 >&3 3>&-; echo $? > {self.path("rc")}; }} ' \
                           f'| true; exit $(cat {self.path("rc")})'
                done = shell(line)
                self.assertEqual(done.returncode, 0, (name, stderr))
                if name != "run json":  # its timings differ
                    self.assertEqual(done.stdout, wanted.stdout, (name, stderr))

    def test_errors_keep_their_status_without_a_stderr(self):
        for stderr in ("2>&-", "2>/dev/full"):
            for command in ("inspect -m absent.gguf", "run --frobnicate", "fly", "run -m $Q4 -p x -n ten"):
                self.assertEqual(shell(f'"$K" {command} {stderr}').returncode, 1, (command, stderr))

    def test_a_stdout_that_takes_nothing_is_an_error(self):
        for name, command in self.commands.items():
            if name == "logits":  # writes nothing there
                continue
            for stdout in (">&-", ">/dev/full"):
                done = shell(f'"$K" {command} {stdout}')
                self.assertEqual(done.returncode, 1, (name, stdout, done.stderr))
                lines = done.stderr.decode().strip().split("\n")
                self.assertRegex(lines[-1], r"\Akazeia: cannot write to standard output: \w", (name, stdout))

    def test_a_file_is_never_mistaken_for_a_closed_stream(self):
        """With stdout and stderr closed, the file that is written must not get their numbers."""
        wanted = shell(f'"$K" {self.commands["quantize"]}')
        self.assertEqual(wanted.returncode, 0, wanted.stderr)
        content = self.read("small.gguf")
        shell(f'"$K" {self.commands["quantize"]} <&- >&- 2>&-')
        self.assertEqual(self.read("small.gguf"), content)
        self.assertEqual(shell(f'"$K" {self.commands["logits"]}').returncode, 0)
        content = self.read("rows.f32")
        self.assertEqual(shell(f'"$K" {self.commands["logits"]} <&- >&- 2>&-').returncode, 0)
        self.assertEqual(self.read("rows.f32"), content)

    def test_a_reader_that_leaves_ends_the_answer(self):
        done = shell(f'{{ "$K" run -m $Q4 -p Hello -n 4000 --ignore-eos; echo $? > {self.path("rc")}; }} | head -c 1')
        self.assertEqual(self.read("rc"), b"1\n")
        self.assertRegex(done.stderr.decode(), r"\Akazeia: cannot write to standard output: [^\n]+\n\Z")


class SignalTest(ProgramTest):
    def start(self, *arguments, **options):
        process = subprocess.Popen([binary(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment(), **options)
        self.addCleanup(process.kill)
        return process

    def endless(self, **options):
        process = self.start("run", "-m", model(), "--backend", "reference", "-p", "Tell me a story.", "--ignore-eos",
                             "-n", "4000", **options)
        self.assertNotEqual(process.stdout.read(1), b"")
        return process

    def wait_for_a_file(self, process):
        deadline = time.monotonic() + 60
        while not os.listdir(self.folder):
            self.assertLess(time.monotonic(), deadline)
            if process.poll() is not None:
                return
            time.sleep(0.001)

    def test_an_answer_ended_by_the_system_says_so(self):
        for sent in (signal.SIGTERM, signal.SIGHUP):
            process = self.endless()
            process.send_signal(sent)
            out, notes = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 128 + sent, notes)
            self.assertTrue(out.endswith(b"\n"))
            self.assertIn("cancelled", notes.decode())

    def test_nothing_half_written_stays(self):
        with open(source_file("tests", "data", "tiny", "valid.txt"), "rb") as file:
            text = file.read()
        ids = os.path.join(self.folder, "..", os.path.basename(self.folder) + ".i32")
        with open(ids, "wb") as file:
            file.write(array.array("i", [300 + byte for byte in text[:4000]]).tobytes())
        self.addCleanup(os.remove, ids)
        for sent in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            for arguments in (("quantize", f16_model(), self.path("out.gguf"), "Q4_K", "-t", "1"),
                              ("logits", "-m", model(), "--backend", "reference", "--ids", ids, "-o",
                               self.path("rows.f32"), "-b", "16")):
                process = self.start(*arguments)
                self.wait_for_a_file(process)
                process.send_signal(sent)
                out, notes = process.communicate(timeout=300)
                if process.returncode == 0:  # it was faster than the signal
                    for name in os.listdir(self.folder):
                        os.remove(self.path(name))
                    continue
                self.assertEqual(process.returncode, 128 + sent, (arguments, notes))
                self.assertRegex(notes.decode(), r"\Akazeia: [^\n]+\n\Z")
                self.assertEqual(os.listdir(self.folder), [], arguments)

    def test_a_second_signal_leaves_nothing_either(self):
        folder = self.path("out")
        ids = self.write("ids.i32", array.array("i", [300 + at % 900 for at in range(3000)]).tobytes())
        os.mkdir(folder)
        process = self.start("logits", "-m", model(), "--backend", "reference", "--ids", ids, "-o",
                             os.path.join(folder, "rows.f32"), "-b", "3000")
        while not os.listdir(folder) and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)  # it is inside one long pass now
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        out, notes = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, notes)
        self.assertEqual(os.listdir(folder), [])

    def test_ignored_hangups_stay_ignored(self):
        """nohup: the answer goes on."""
        process = self.endless(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)

    def test_the_limit_of_file_sizes_is_an_error(self):
        limit = (100_000, 100_000)
        ids = self.write("ids.i32", array.array("i", range(300, 400)).tobytes())
        for arguments, name in ((("quantize", f16_model(), self.path("out.gguf"), "Q4_0"), "out.gguf"),
                                (("logits", "-m", model(), "--ids", ids, "-o", self.path("rows.f32")), "rows.f32")):
            process = self.start(*arguments, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
            out, notes = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 1, notes)
            self.assertRegex(notes.decode(), rf"\Akazeia: [^\n]*{name}[^\n]*[Ff]ile too large\n\Z")
            self.assertEqual(os.listdir(self.folder), ["ids.i32"])

    def test_a_model_that_is_cut_while_it_runs(self):
        path = shutil.copy(model(), self.path("model.gguf"))
        process = self.start("run", "-m", path, "--activations", "f32", "-p", "Tell me a story.", "--ignore-eos", "-n",
                             "4000")
        self.assertNotEqual(process.stdout.read(1), b"")
        os.truncate(path, 4096)
        out, notes = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, notes)
        self.assertRegex(notes.decode(), r"\Akazeia: a mapped file can no longer be read[^\n]+\n\Z")


class InputLimitTest(ProgramTest):
    def test_texts_and_ids_without_end(self):
        if sanitized():
            self.skipTest("a sanitizer needs more address space than the limit of this test")
        limit = (2 << 30, 2 << 30)

        def bounded():
            resource.setrlimit(resource.RLIMIT_AS, limit)

        for needle, arguments in (
            ("/dev/zero: has 256", ("tokenize", "-m", model(), "-f", "/dev/zero")),
            ("/dev/zero: has 256", ("perplexity", "-m", model(), "-f", "/dev/zero")),
            ("/dev/zero: has 64", ("logits", "-m", model(), "--ids", "/dev/zero", "-o", self.path("rows.f32"))),
        ):
            self.fail_with(needle, *arguments, preexec_fn=bounded)
        with open(self.path("huge.txt"), "wb") as file:
            file.truncate(1 << 40)
        self.fail_with("1.0 TiB", "run", "-m", model(), "-f", self.path("huge.txt"), preexec_fn=bounded)

    def test_a_file_without_a_name(self):
        self.fail_with("name", "run", "-m", model(), "-f", "")
        self.fail_with("--ids", "logits", "-m", model(), "--ids", "", "-o", "x")


class OverwriteTest(ProgramTest):
    """No command writes over what it reads, under whatever name."""

    def setUp(self):
        super().setUp()
        self.model = shutil.copy(model(), self.path("model.gguf"))
        self.ids = self.write("ids.i32", array.array("i", [300, 301, 302]).tobytes())
        os.symlink("model.gguf", self.path("soft.gguf"))
        os.link(self.model, self.path("hard.gguf"))
        self.before = (self.read("model.gguf"), self.read("ids.i32"))

    def test_logits_spare_their_inputs(self):
        for output in ("model.gguf", "soft.gguf", "hard.gguf", "ids.i32", "./../" + os.path.basename(self.folder) +
                       "/model.gguf"):
            self.fail_with("same file", "logits", "-m", self.model, "--ids", self.ids, "-o", self.path(output))
        self.assertEqual((self.read("model.gguf"), self.read("ids.i32")), self.before)
        self.assertTrue(os.path.islink(self.path("soft.gguf")))

    def test_links_are_written_through(self):
        self.write("old.f32", b"old")
        os.chmod(self.path("old.f32"), 0o640)
        os.symlink("old.f32", self.path("link.f32"))
        self.succeed("logits", "-m", self.model, "--ids", self.ids, "-o", self.path("link.f32"))
        self.assertTrue(os.path.islink(self.path("link.f32")))
        self.assertEqual(os.path.getsize(self.path("old.f32")), 3 * 1600 * 4)
        self.assertEqual(os.stat(self.path("old.f32")).st_mode & 0o777, 0o640)
        os.symlink("absent.f32", self.path("lost.f32"))
        self.fail_with("leads nowhere", "logits", "-m", self.model, "--ids", self.ids, "-o", self.path("lost.f32"))
        self.assertTrue(os.path.islink(self.path("lost.f32")))
