"""Model files, good and damaged; what the other commands write."""
import array
import json
import os
import signal
import subprocess
import time

from program import ProgramTest, binary, environment, f16_model, model, run, source_file


def expected():
    with open(source_file("tests", "data", "tiny", "expected.json"), encoding="utf-8") as file:
        return json.load(file)


class DamagedModelTest(ProgramTest):
    COMMANDS = (("inspect",), ("run", "-p", "x"), ("tokenize", "-p", "x"))

    def refuse(self, needle, path):
        for command in self.COMMANDS:
            text = self.fail_with(needle, command[0], "-m", path, *command[1:])
            self.assertNotIn("\x1b", text)
            self.assertNotIn("\0", text)

    def test_missing(self):
        self.refuse("absent.gguf", self.path("absent.gguf"))

    def test_folder_and_empty_file(self):
        self.refuse(self.folder, self.folder)
        self.refuse("empty.gguf", self.write("empty.gguf", b""))

    def test_garbage(self):
        """B003: bytes of a file never reach the terminal as they are."""
        for content in (b"\0\x1b[A" + b"x" * 100, b"<!DOCTYPE html>", os.urandom(4096), b"GGUF"):
            self.refuse("garbage.gguf", self.write("garbage.gguf", content))

    def test_truncated(self):
        with open(model(), "rb") as file:
            whole = file.read()
        for share in (0.001, 0.01, 0.2, 0.9, 0.999):
            self.refuse("cut.gguf", self.write("cut.gguf", whole[: int(len(whole) * share)]))

    def test_unreadable_version(self):
        with open(model(), "rb") as file:
            whole = file.read()
        self.refuse("version", self.write("v4.gguf", whole[:4] + b"\4\0\0\0" + whole[8:4096]))


class InspectTest(ProgramTest):
    def test_json_figures(self):
        out = self.succeed_json("inspect", "-m", model())
        self.assertEqual(out["architecture"], "qwen35")
        self.assertEqual(out["file_bytes"], os.path.getsize(model()))
        self.assertEqual((out["n_layers"], out["n_attention_layers"], out["n_delta_layers"]), (8, 2, 6))
        self.assertEqual((out["n_embd"], out["n_ff"], out["n_heads"], out["n_kv_heads"]), (256, 768, 4, 2))
        self.assertEqual((out["n_vocab"], out["n_ctx_train"], out["tied"]), (1600, 4096, True))
        self.assertEqual(sum(item["count"] for item in out["tensors"]), out["n_tensors"])
        self.assertEqual(sum(item["size_bytes"] for item in out["tensors"]), out["weight_bytes"])
        self.assertLess(out["weight_bytes"], out["file_bytes"])
        self.assertIn("<|im_start|>", out["chat_template"])

    def test_memory_grows_with_context_and_type(self):
        def kv(*flags):
            items = self.succeed_json("inspect", "-m", model(), *flags)["memory"]["items"]
            return {item["what"]: item["size_bytes"] for item in items}
        # 2 attention layers x 2 KV heads x 64 values, keys and values, of 2 or 4 bytes.
        row_bytes = 2 * 2 * 64 * 2 * 2
        self.assertEqual(kv("-c", "4096")["KV"], 4096 * row_bytes)
        self.assertEqual(kv("-c", "1024")["KV"], 1024 * row_bytes)
        self.assertEqual(kv("-c", "1024", "-ctk", "f32", "-ctv", "f32")["KV"], 2 * 1024 * row_bytes)
        self.assertEqual(kv("-c", "0")["KV"], 4096 * row_bytes)
        self.assertEqual(kv("-c", "1024")["recurrent state"], kv("-c", "4096")["recurrent state"])

    def test_table_and_template(self):
        text = self.succeed("inspect", "-m", model()).stdout.decode()
        for word in ("qwen35", "blk.*.", "Q4_0", "chat template", "memory", "total"):
            self.assertIn(word, text)
        template = self.succeed("inspect", "-m", model(), "--template").stdout.decode()
        self.assertEqual(template.rstrip("\n"),
                         self.succeed_json("inspect", "-m", model())["chat_template"].rstrip("\n"))


class TokenizeTest(ProgramTest):
    def test_known_ids(self):
        facts = expected()
        prompt = self.write("prompt.txt", facts["prompt"].encode())
        special = self.succeed_json("tokenize", "-m", model(), "--parse-special", "-f", prompt)
        self.assertEqual(special, {"ids": facts["ids"]})
        plain = self.succeed_json("tokenize", "-m", model(), "-f", prompt)["ids"]
        self.assertNotEqual(plain, facts["ids"])

    def test_a_file_that_holds_nothing_but_a_vocabulary(self):
        for name, ids in (("qwen3", [9707, 1879]), ("gpt-2", [15496, 995])):
            vocabulary = source_file("tests", "data", "tokenizer", name + "-vocab.gguf")
            self.assertEqual(self.succeed_json("tokenize", "-m", vocabulary, "-p", "Hello world"), {"ids": ids})

    def test_empty_text(self):
        self.assertEqual(self.succeed_json("tokenize", "-m", model(), "-p", "")["ids"], [])

    def test_table(self):
        text = self.succeed("tokenize", "-m", model(), "-p", "Hello\\n\\x1b[31m\\xff").stdout.decode()
        self.assertIn("\\n", text)
        self.assertIn("\\x1b", text)
        self.assertIn("\\xff", text)
        self.assertNotIn("\x1b", text)


class LogitsTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.ids = expected()["ids"]
        self.ids_path = self.write("ids.i32", array.array("i", self.ids).tobytes())

    def rows(self, name):
        values = array.array("f")
        values.frombytes(self.read(name))
        return values

    def test_rows_are_right_and_the_same_again(self):
        self.succeed("logits", "-m", f16_model(), "--ids", self.ids_path, "-o", self.path("a.f32"))
        self.succeed("logits", "-m", f16_model(), "--ids", self.ids_path, "-o", self.path("b.f32"), "-b", "7", "-t",
                     "1")
        self.assertEqual(self.read("a.f32"), self.read("b.f32"))
        rows, n_vocab = self.rows("a.f32"), expected()["vocab"]
        self.assertEqual(len(rows), len(self.ids) * n_vocab)
        best = [max(range(n_vocab), key=rows[at * n_vocab:(at + 1) * n_vocab].__getitem__)
                for at in range(len(self.ids))]
        self.assertEqual(best, expected()["files"]["kazeia-tiny-f16.gguf"]["argmax"])

    def test_backends_agree(self):
        for backend in ("reference", "cpu"):
            self.succeed("logits", "-m", f16_model(), "--ids", self.ids_path, "-o", self.path(backend), "--backend",
                         backend)
        worst = max(abs(a - b) for a, b in zip(self.rows("reference"), self.rows("cpu")))
        self.assertLess(worst, 0.01)

    def test_bad_ids_leave_the_output_alone(self):
        self.write("rows.f32", b"precious")
        for needle, content in (("multiple of 4", b"12345"), ("0 bytes", b""),
                                ("1600", array.array("i", [5, 1600]).tobytes()),
                                ("-1", array.array("i", [-1]).tobytes())):
            self.fail_with(needle, "logits", "-m", model(), "--ids", self.write("bad.i32", content), "-o",
                           self.path("rows.f32"))
            self.assertEqual(self.read("rows.f32"), b"precious")
        self.assertEqual(sorted(os.listdir(self.folder)), ["bad.i32", "ids.i32", "rows.f32"])

    def test_output_in_a_folder_that_is_not_there(self):
        self.fail_with("absent", "logits", "-m", model(), "--ids", self.ids_path, "-o", self.path("absent/rows.f32"))


class PerplexityTest(ProgramTest):
    def test_last_line_and_rule(self):
        with open(source_file("tests", "data", "tiny", "valid.txt"), "rb") as file:
            text = self.write("text.txt", file.read()[:6000])
        printed = self.succeed("perplexity", "-m", model(), "-f", text, "-c", "128").stdout.decode()
        lines = printed.rstrip("\n").split("\n")
        self.assertRegex(lines[0], r"\A\[1\]\d+\.\d{4},\[2\]\d+\.\d{4}")
        self.assertRegex(lines[-2], r"\d+ tokens, \d+ chunks of 128, \d+ tokens scored; .*second half")
        self.assertRegex(lines[-1], r"\AFinal estimate: PPL = \d+\.\d{4} \+/- \d+\.\d{5}\Z")
        out = self.succeed_json("perplexity", "-m", model(), "-f", text, "-c", "128")
        self.assertEqual(out["n_scored"], out["n_chunks"] * 63)
        self.assertIn(f"PPL = {out['perplexity']:.4f} ", lines[-1])

    def test_too_short(self):
        self.fail_with("tokens", "perplexity", "-m", model(), "-p", "short", "-c", "512")


class QuantizeTest(ProgramTest):
    def test_makes_a_model_that_answers(self):
        self.succeed("quantize", f16_model(), self.path("q8.gguf"), "Q8_0")
        self.assertLess(os.path.getsize(self.path("q8.gguf")), 0.7 * os.path.getsize(f16_model()))
        done = self.succeed("run", "-m", self.path("q8.gguf"), "-p", "What is the capital of Peru?", "--temp", "0")
        self.assertEqual(done.stdout, b"The capital of Peru is Lima.\n")
        self.assertEqual(os.listdir(self.folder), ["q8.gguf"])

    def test_errors_keep_the_target(self):
        target = self.write("target.gguf", b"precious")
        with open(f16_model(), "rb") as file:
            cut = self.write("cut.gguf", file.read()[:-1000])
        for needle, arguments in (
            ("absent.gguf", (self.path("absent.gguf"), target, "Q8_0")),
            ("cut.gguf", (cut, target, "Q8_0")),
            ("Q9_9", (f16_model(), target, "Q9_9")),
            ("requantize", (model(), target, "Q8_0")),
            ("absent", (f16_model(), self.path("absent/out.gguf"), "Q8_0")),
        ):
            with self.subTest(arguments=arguments):
                self.fail_with(needle, "quantize", *arguments)
                self.assertEqual(self.read("target.gguf"), b"precious")
        self.assertEqual(sorted(os.listdir(self.folder)), ["cut.gguf", "target.gguf"])

    def test_source_is_not_overwritten(self):
        with open(f16_model(), "rb") as file:
            content = file.read()
        source = self.write("model.gguf", content)
        self.fail_with("model.gguf", "quantize", source, source, "Q8_0")
        self.assertEqual(self.read("model.gguf"), content)

    def test_interrupted_leaves_nothing(self):
        process = subprocess.Popen([binary(), "quantize", f16_model(), self.path("out.gguf"), "Q4_K", "-t", "1"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=environment())
        self.addCleanup(process.kill)
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        if process.returncode == 0:  # it was faster than the signal
            self.assertEqual(os.listdir(self.folder), ["out.gguf"])
            self.succeed("inspect", "-m", self.path("out.gguf"))
        else:
            self.assertIn(process.returncode, (130, -signal.SIGINT))
            self.assertEqual(os.listdir(self.folder), [])
