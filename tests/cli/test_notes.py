"""What a user is told about a file and about the way it is used."""
import os
import struct
import subprocess

from program import ProgramTest, binary, environment, f16_model, model, run, source_file

GREEDY = ("--temp", "0")


def key_value_at(content, key):
    """Where the value of a key begins: behind the key's text and the number of its type."""
    name = struct.pack("<Q", len(key)) + key.encode()
    at = content.find(name)
    assert at > 0 and content.find(name, at + 1) < 0, key
    return at + len(name) + 4


class PatchedModel:
    """A model file of which values are replaced by others of the same size."""

    def __init__(self, path=None):
        with open(path or model(), "rb") as file:
            self.content = bytearray(file.read())

    def set_u32(self, key, value):
        at = key_value_at(self.content, key)
        assert struct.unpack_from("<I", self.content, at - 4)[0] in (4, 5), key
        struct.pack_into("<I", self.content, at, value)
        return self

    def replace_in_text(self, key, old, new):
        assert len(old) == len(new)
        at = key_value_at(self.content, key)
        size = struct.unpack_from("<Q", self.content, at)[0]
        text = bytes(self.content[at + 8:at + 8 + size])
        assert old in text, (key, old)
        self.content[at + 8:at + 8 + size] = text.replace(old, new)
        return self

    def replace_all(self, old, new):
        assert len(old) == len(new) and old in self.content
        self.content = bytearray(bytes(self.content).replace(old, new))
        return self


class FileNotesTest(ProgramTest):
    def patched(self, patch, name="patched.gguf"):
        return self.write(name, bytes(patch.content))

    def notes_of(self, path):
        """The notes on a file, which inspect and run show alike."""
        shown = self.succeed_json("inspect", "-m", path)["notes"]
        table = self.succeed("inspect", "-m", path).stdout.decode()
        answer = self.succeed_json("run", "-m", path, "-p", "Hello", "-n", "1")["notes"]
        printed = self.succeed("run", "-m", path, "-p", "Hello", "-n", "1").stderr.decode()
        for note in shown:
            self.assertIn(note, answer)
            self.assertIn(note, table)
            self.assertIn("note: " + note + "\n", printed)
        return shown

    def test_an_mtp_head_is_recognised(self):
        self.assertEqual(self.notes_of(model()), ["MTP head present (15 tensors in blk.8): not used yet"])

    def test_blocks_outside_block_count(self):
        patch = PatchedModel().set_u32("qwen35.block_count", 8).set_u32("qwen35.nextn_predict_layers", 0)
        notes = self.notes_of(self.patched(patch))
        self.assertEqual(len(notes), 1)
        self.assertRegex(notes[0], r"1 of the file's 9 blocks lie outside block_count .*blk\.8")

    def test_special_ids_outside_the_vocabulary(self):
        path = self.patched(PatchedModel().set_u32("tokenizer.ggml.eos_token_id", 99999)
                            .set_u32("tokenizer.ggml.bos_token_id", 99998))
        notes = self.notes_of(path)
        self.assertTrue(any("tokenizer.ggml.eos_token_id is 99999" in note for note in notes), notes)
        self.assertIn("bos none (not added), eos none", self.succeed("inspect", "-m", path).stdout.decode())
        tokenizer = self.succeed_json("inspect", "-m", path)["tokenizer"]
        self.assertEqual((tokenizer["bos"], tokenizer["eos"]), (None, None))

    def test_notes_come_behind_the_line_of_the_answer(self):
        # One pipe for both, as in `kazeia run ... 2>&1 | less`.
        merged = subprocess.run([binary(), "run", "-m", model(), "-p", "Hello", "-n", "3", *GREEDY], env=environment(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                timeout=600, check=True).stdout.decode()
        answer = self.succeed("run", "-m", model(), "-p", "Hello", "-n", "3", *GREEDY).stdout.decode()
        self.assertTrue(merged.startswith(answer + "note: "), merged)

    def test_no_perf_keeps_the_file_to_itself(self):
        done = self.succeed("run", "-m", model(), "-p", "Hello", "-n", "1", "--no-perf")
        self.assertEqual(done.stderr, b"")


class PartialFileTest(ProgramTest):
    """inspect shows what there is of files that cannot run."""

    def test_a_vocabulary_without_a_model(self):
        path = source_file("tests", "data", "tokenizer", "qwen3-vocab.gguf")
        out = self.succeed_json("inspect", "-m", path)
        self.assertIn("no tensors", out["problem"])
        self.assertIsNone(out["memory"])
        self.assertEqual((out["tokenizer"]["model"], out["tokenizer"]["eos"]), ("gpt2", 151645))
        self.assertIn("no tensors", self.succeed("inspect", "-m", path).stdout.decode())
        self.assertEqual(run("run", "-m", path, "-p", "x").returncode, 1)

    def test_an_architecture_that_is_not_supported(self):
        """B027: it is neither corrupt nor incomplete, and its numbers are there."""
        patch = PatchedModel().replace_in_text("general.architecture", b"qwen35", b"qwen99")
        path = self.write("odd.gguf", bytes(patch.replace_all(b"qwen35.", b"qwen99.").content))
        out = self.succeed_json("inspect", "-m", path)
        self.assertIn("architecture 'qwen99' is not supported", out["problem"])
        self.assertEqual((out["architecture"], out["n_layers"], out["n_embd"], out["n_ctx_train"]),
                         ("qwen99", 9, 256, 4096))
        self.assertEqual(out["n_tensors"], 123)
        self.assertEqual(out["tokenizer"]["n_tokens"], 1600)
        self.assertIn("cannot run", self.succeed("inspect", "-m", path).stdout.decode())
        self.fail_with("not supported", "run", "-m", path, "-p", "x")

    def test_a_damaged_model_is_shown_and_is_an_error(self):
        path = self.write("odd.gguf", bytes(PatchedModel().replace_all(b"blk.0.ssm_a", b"blk.0.ssm_b").content))
        done = run("inspect", "-m", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("blk.*.ssm_out.weight", done.stdout.decode())
        self.assertRegex(done.stderr.decode(), r"\Akazeia: [^\n]*blk\.0\.ssm_a is missing[^\n]*\n\Z")


class UsageNotesTest(ProgramTest):
    def stderr_of(self, *arguments):
        return self.succeed("run", "-p", "Hello", "-n", "1", "--no-perf", *arguments).stderr.decode()

    def test_a_template_that_is_not_chatml(self):
        patch = PatchedModel().replace_in_text("tokenizer.chat_template", b"<|im_start|>", b"<|im_begun|>")
        path = self.write("odd.gguf", bytes(patch.content))
        self.assertRegex(self.stderr_of("-m", path), r"\Anote: [^\n]*template is not ChatML[^\n]*\n\Z")
        self.assertEqual(self.stderr_of("-m", path, "--raw"), "")
        self.assertEqual(self.stderr_of("-m", model()), "")

    def test_no_chat_format(self):
        path = self.write("odd.gguf", bytes(PatchedModel().replace_all(b"<|im_start|>", b"<|im_begun|>").content))
        self.assertRegex(self.stderr_of("-m", path), r"\Anote: [^\n]*no ChatML tokens[^\n]*\n\Z")
        self.fail_with("-sys", "run", "-m", path, "-p", "x", "-sys", "y")
        self.fail_with("-rea", "run", "-m", path, "-p", "x", "-rea", "on")

    def test_a_context_beyond_the_trained_one(self):
        self.assertRegex(self.stderr_of("-m", model(), "-c", "5000"), r"\Anote: [^\n]*5000[^\n]*4096[^\n]*\n\Z")
        self.assertEqual(self.stderr_of("-m", model(), "-c", "4096"), "")

    def test_flags_of_other_engines(self):
        notes = self.stderr_of("-m", model(), "-ngl", "99", "-fa", "on", "-st", "--n-gpu-layers=3", "-fa", "-tb", "4")
        self.assertEqual(notes.count(" has no effect: "), 6, notes)

    def test_reasoning_words(self):
        self.assertEqual(self.stderr_of("-m", model(), "-rea", "auto"), "")
        # What the environment says about every run gives way to --raw.
        done = self.succeed("run", "-m", model(), "-p", "Hello", "-n", "1", "--no-perf", "--raw",
                            env={"KAZEIA_ARG_REASONING": "on", "KAZEIA_ARG_SYSTEM_PROMPT": "Be short."})
        self.assertEqual(done.stderr, b"")

    def test_the_rate_of_one_token(self):
        notes = self.succeed("run", "-m", model(), "-p", "Hello", "-n", "1").stderr.decode()
        self.assertRegex(notes, r"(?m)^decode   1 token in \d+\.\d{3} s, too few for a rate$")


class ContextTest(ProgramTest):
    def test_a_huge_trained_context(self):
        """-c 0 takes what the file says: a note or an error, never a crash."""
        for n_ctx in ((1 << 31) - 1, 1 << 30, 1 << 24):
            path = self.write("odd.gguf", bytes(PatchedModel().set_u32("qwen35.context_length", n_ctx).content))
            self.assertEqual(self.succeed_json("inspect", "-m", path, "-c", "0")["memory"]["n_ctx"], 1 << 24)
            done = run("run", "-m", path, "-p", "Hello", "-n", "1", "-c", "0", "-ctk", "f32", "-ctv", "f32")
            machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
            if machine < 32 << 30:
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr.decode(),
                                 r"\Akazeia: a context of 16777216 tokens needs [^\n]*-c[^\n]*\n\Z")
            else:
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_logits_take_no_more_ids_than_the_context(self):
        ids = self.write("ids.i32", struct.pack("<3i", 300, 301, 302))
        self.fail_with("3 ids", "logits", "-m", f16_model(), "--ids", ids, "-o", self.path("rows"), "-c", "2")
        self.succeed("logits", "-m", f16_model(), "--ids", ids, "-o", self.path("rows"), "-c", "3")
