"""`kazeia bench` from outside: its output read back, and what it refuses."""
import csv
import io
import json

from program import ProgramTest, model, run, sanitized

SMALL = ("-p", "16", "-n", "4", "-r", "2", "-t", "1", "--no-limits", "--first-token", "8")


class BenchTest(ProgramTest):
    def test_json(self):
        rows = json.loads(self.succeed("bench", "-m", model(), *SMALL, "-d", "0,32", "-o", "json").stdout)
        self.assertEqual([row["test"] for row in rows], ["pp16", "tg4", "pp16 @ d32", "tg4 @ d32"])
        for row in rows:
            self.assertEqual(len(row["samples_ns"]), 2)
            self.assertGreater(row["median_ts"], 0)
            self.assertTrue(row["same_logits"])
            self.assertEqual(row["n_threads"], 1)
            self.assertIsNone(row["read_share"])  # no limits were measured
            self.assertEqual(list(row["first_token_ms"]), ["8"])
        self.assertEqual(len({row["model_hash"] for row in rows}), 1)

    def test_limits_and_profile(self):
        rows = json.loads(self.succeed("bench", "-m", model(), "-p", "8", "-n", "2", "-r", "1", "--first-token", "0",
                                       "--no-warmup", "--profile", "-o", "json").stdout)
        for row in rows:
            self.assertGreater(row["limit_read_bytes_s"], 1e6)
            self.assertIsNone(row["read_share"])  # the model lies in the cache
            self.assertEqual(row["first_token_ms"], {})
            verbs = {verb["verb"] for verb in row["profile"]["verbs"]}
            self.assertLessEqual({"linear", "attention", "delta_rule", "rms_norm"}, verbs)
            if not sanitized():  # those keep what was freed
                self.assertLess(row["peak_bytes"], 1 << 30)  # without the memory that the limits are measured with

    def test_lists_of_conditions(self):
        out = self.succeed("bench", "-m", model(), "-p", "0", "-n", "2", "-r", "1", "-t", "1-2", "-ctk", "f16,q8_0",
                           "-ub", "4", "-b", "8", "--activations", "f32,q8", "--no-limits", "--first-token", "0", "-o",
                           "csv").stdout
        rows = list(csv.DictReader(io.StringIO(out.decode())))
        self.assertEqual([(row["activations"], row["n_threads"], row["type_k"]) for row in rows],
                         [(a, t, k) for a in ("f32", "q8") for t in ("1", "2") for k in ("f16", "q8_0")])
        self.assertEqual({(row["n_batch"], row["n_ubatch"]) for row in rows}, {("8", "4")})
        hashes = {(row["activations"], row["type_k"]): set() for row in rows}
        for row in rows:
            hashes[row["activations"], row["type_k"]].add(row["logits_hash"])
        self.assertEqual({len(found) for found in hashes.values()}, {1})  # threads change nothing
        self.assertEqual(len(set.union(*hashes.values())), 4)

    def test_table_and_markdown(self):
        table = self.succeed("bench", "-m", model(), *SMALL).stdout.decode()
        self.assertIn("pp16", table)
        self.assertIn("tok/s", table)
        markdown = self.succeed("bench", "-m", model(), *SMALL, "-o", "md", "--profile").stdout.decode()
        self.assertTrue(markdown.startswith("| model |"))
        self.assertIn("build: ", markdown)
        self.assertIn("other", markdown)

    def test_refusals(self):
        for needle, arguments in (("expected a whole number", ("-p", "1,x")), ("-d: ", ("-d", "5-1")),
                                  ("out of range", ("-t", "100000")), ("nothing to measure", ("-p", "0", "-n", "0")),
                                  ("json or jsonl", ("-o", "sql")), ("q3", ("-ctk", "q3")),
                                  ("needs a context of 4608 tokens", ("-d", "4096", "-p", "512", "-n", "0")),
                                  ("avx1024", ("--isa", "avx1024")), ("--repetitions", ("-r", "0")),
                                  ("i4", ("--activations", "i4"))):
            self.fail_with(needle, "bench", "-m", model(), *arguments)
        self.fail_with("no model given", "bench")
        self.fail_with("absent.gguf", "bench", "-m", self.path("absent.gguf"))
        # Refused before anything else has run.
        self.fail_with("tg4090 @ d32", "bench", "-m", model(), *SMALL, "-d", "0,32", "-n", "4,4090")

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            done = run("bench", "-m", model(), *SMALL, stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard output", done.stderr)
