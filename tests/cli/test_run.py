"""`kazeia run`: answers, statistics, interruption."""
import json
import os
import signal
import subprocess
import time

from program import ProgramTest, binary, environment, f16_model, model, run, source_file

GREEDY = ("--temp", "0")


class AnswerTest(ProgramTest):
    def test_the_answer_alone_is_on_stdout(self):
        done = self.succeed("run", "-m", f16_model(), "-p", "What is the capital of Peru?", *GREEDY)
        self.assertEqual(done.stdout, b"The capital of Peru is Lima.\n")
        notes = done.stderr.decode()
        for word in ("load", "prompt", "decode", "tok/s", "memory", "weights", "KV", "recurrent state", "scratch",
                     "vocabulary", "kernels", "finish", "seed"):
            self.assertIn(word, notes)

    def test_raw_prompts_match_the_stored_answers(self):
        with open(source_file("tests", "data", "tiny", "greedy.json"), encoding="utf-8") as file:
            answers = json.load(file)["answers"]
        checked = 0
        for answer in answers:
            if answer["smallest_gap"] < 0.5 or checked == 4 or not answer["stopped"]:
                continue
            done = self.succeed_json("run", "-m", f16_model(), "--raw", "--no-escape", "-p", answer["prompt"], *GREEDY)
            self.assertEqual(done["ids"], answer["ids"], answer["name"])
            self.assertEqual(done["finish_reason"], "stop")
            checked += 1
        self.assertEqual(checked, 4)

    def test_no_perf_is_silent(self):
        done = self.succeed("run", "-m", model(), "-p", "Hello", "-n", "3", "--no-perf")
        self.assertEqual(done.stderr, b"")

    def test_verbose_shows_the_estimate_and_where_verbs_ran(self):
        notes = self.succeed("run", "-m", model(), "-p", "Hello", "-n", "2", "-v").stderr.decode()
        self.assertIn("memory to be used", notes)
        self.assertRegex(notes, r"(?m)^  linear +\S.* +\S+ +\d+$")

    def test_same_seed_same_text(self):
        first, second = (self.succeed_json("run", "-m", model(), "-p", "Tell me a story.", "-s", "7", "-n", "40")
                         for _ in range(2))
        self.assertEqual(first["text"], second["text"])
        self.assertEqual(first["seed"], 7)
        other = self.succeed_json("run", "-m", model(), "-p", "Tell me a story.", "-s", "8", "-n", "40")
        self.assertNotEqual(first["text"], other["text"])

    def test_a_reported_seed_gives_the_text_again(self):
        first = self.succeed_json("run", "-m", model(), "-p", "Tell me a story.", "-n", "30")
        again = self.succeed_json("run", "-m", model(), "-p", "Tell me a story.", "-n", "30", "-s", str(first["seed"]))
        self.assertEqual(first["ids"], again["ids"])

    def test_json_holds_everything(self):
        out = self.succeed_json("run", "-m", model(), "-p", "Hello", "-n", "5", "--ignore-eos")
        self.assertEqual(out["finish_reason"], "length")
        self.assertEqual(out["timings"]["predicted_n"], 5)
        self.assertEqual(len(out["ids"]), 5)
        self.assertGreater(out["timings"]["prompt_n"], 1)
        self.assertGreater(out["timings"]["prompt_per_second"], 0)
        kinds = {item["what"] for item in out["memory"]}
        self.assertLessEqual({"weights", "KV", "recurrent state", "scratch", "vocabulary"}, kinds)
        self.assertTrue(out["placement"])
        self.assertTrue(all(item["calls"] > 0 and item["kernel"] and item["device"] for item in out["placement"]))

    def test_stop_strings(self):
        out = self.succeed_json("run", "-m", f16_model(), "-p", "What is the capital of Peru?", *GREEDY,
                                "--stop", " is", "-r", "never seen")
        self.assertEqual(out["text"], "The capital of Peru")
        self.assertEqual(out["finish_reason"], "stop")

    def test_context_is_an_ordinary_end(self):
        out = self.succeed_json("run", "-m", model(), "-p", "Hello", "-c", "32", "--ignore-eos")
        self.assertEqual(out["finish_reason"], "context")
        self.assertEqual(out["n_ctx"], 32)

    def test_a_prompt_longer_than_the_context_names_both_numbers(self):
        text = self.fail_with("16", "run", "-m", model(), "-p", "one two three four five " * 20, "-c", "16")
        self.assertRegex(text, r"\d{2,}.*16|16.*\d{2,}")

    def test_backends_and_cache_types_agree_on_a_plain_answer(self):
        for flags in (("--backend", "reference"), ("-ctk", "f32", "-ctv", "f32"), ("-ctk", "q8_0", "-ctv", "q8_0"),
                      ("-b", "1"), ("-t", "1"), ("-c", "0")):
            done = self.succeed("run", "-m", f16_model(), "-p", "What is the capital of Peru?", *GREEDY, *flags)
            self.assertEqual(done.stdout, b"The capital of Peru is Lima.\n", flags)

    def test_reasoning(self):
        done = self.succeed("run", "-m", f16_model(), "-p", "Which city is the capital of Norway?", *GREEDY,
                            "-rea", "on")
        self.assertIn(b"</think>", done.stdout)
        self.assertTrue(done.stdout.endswith(b"The capital of Norway is Oslo.\n"))


class InputTest(ProgramTest):
    def test_file_bytes_reach_the_tokenizer_unchanged(self):
        """B167: blank lines, trailing backslash, no final line end, escapes that are none."""
        text = b"first \\\n\n\n  second\\n\r\nlast without end"
        ids = self.succeed_json("tokenize", "-m", model(), "-f", self.write("prompt.txt", text))["ids"]
        typed = self.succeed_json("tokenize", "-m", model(), "--no-escape", "-p", text.decode())["ids"]
        self.assertEqual(ids, typed)
        out = self.succeed_json("run", "-m", model(), "-f", self.path("prompt.txt"), "-n", "1")
        self.assertEqual(out["prompt"].encode(), text)
        piped = self.succeed_json("tokenize", "-m", model(), "-f", "-", input=text)["ids"]
        self.assertEqual(ids, piped)

    def test_escapes(self):
        """B051: resolved by default, not with --no-escape; never in files."""
        newline = self.succeed_json("tokenize", "-m", model(), "-p", "a\nb")["ids"]
        self.assertEqual(self.succeed_json("tokenize", "-m", model(), "-p", "a\\nb")["ids"], newline)
        self.assertNotEqual(self.succeed_json("tokenize", "-m", model(), "--no-escape", "-p", "a\\nb")["ids"], newline)
        self.assertEqual(self.succeed_json("tokenize", "-m", model(), "-f", self.write("t", b"a\nb"))["ids"], newline)

    def test_paths_outside_ascii(self):
        """B039: spaces, accents, other scripts and emoji in the paths of model and prompt."""
        folder = self.path("モデル é 🦙")
        os.mkdir(folder)
        path = os.path.join(folder, "qwen 3.gguf")
        os.symlink(model(), path)
        prompt = os.path.join(folder, "question – où.txt")
        with open(prompt, "wb") as file:
            file.write("Comment dit-on « nuit » ?".encode())
        out = self.succeed_json("run", "-m", path, "-f", prompt, "-n", "2")
        self.assertEqual(out["model"]["path"], path)
        self.assertIn(path.encode(), self.succeed("run", "-m", path, "-f", prompt, "-n", "2").stderr)
        self.assertIn(path.encode(), self.succeed("inspect", "-m", path).stdout)

    def test_stdin_closed(self):
        done = subprocess.run(f"'{binary()}' run -m '{model()}' -p Hello -n 2 <&-", shell=True, capture_output=True,
                              env=environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        closed = subprocess.run(f"'{binary()}' run -m '{model()}' -f - <&-", shell=True, capture_output=True,
                                env=environment())
        self.assertEqual(closed.returncode, 1)
        self.assertRegex(closed.stderr.decode(), r"\Akazeia: standard input[^\n]+\n\Z")

    def test_missing_prompt_file(self):
        self.fail_with("absent.txt", "run", "-m", model(), "-f", self.path("absent.txt"))

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            done = run("inspect", "-m", model(), stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.decode(), r"\Akazeia: [^\n]+\n\Z")


class InterruptTest(ProgramTest):
    def start(self):
        """A run that goes on until it is stopped; returns it once text comes."""
        process = subprocess.Popen([binary(), "run", "-m", model(), "--backend", "reference", "-p", "Tell me a story.",
                                    "--ignore-eos", "-c", "4096", "-n", "4000"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        self.addCleanup(process.kill)
        self.assertNotEqual(process.stdout.read(1), b"")
        return process

    def test_first_ctrl_c_ends_the_answer_cleanly(self):
        process = self.start()
        process.send_signal(signal.SIGINT)
        out, notes = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, notes)
        self.assertTrue(out.endswith(b"\n"))
        self.assertIn("cancelled", notes.decode())

    def test_second_ctrl_c_ends_the_program(self):
        process = subprocess.Popen([binary(), "run", "-m", model(), "--backend", "reference", "-b", "4000", "-p",
                                    "a " * 3000], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=environment())
        self.addCleanup(process.kill)
        time.sleep(1.5)  # the reference backend is inside one long pass over the prompt now
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130)
