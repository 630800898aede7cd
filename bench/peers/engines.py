"""One run of one engine: its rates by test, its peak resident memory, its wall time."""
import json
import os
import subprocess
import tempfile
import time


class RunFailed(Exception):
    """A program that ended with another status than 0."""


def measured(command):
    """The program's output, its peak resident memory in bytes and its wall time in seconds."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        with subprocess.Popen(command, stdout=output, stderr=errors) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - start
        output.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            tail = errors.read().decode(errors="replace").strip()[-300:]
            raise RunFailed(f"'{' '.join(command)}' ended with status {process.returncode}: {tail}")
        return output.read(), usage.ru_maxrss * 1024, seconds


class Engine:
    """Both sides speak the dialect of llama-bench: -p -n -d -t -r -o json give one object per test, in which n_prompt,
    n_gen and n_depth name it and avg_ts is its speed."""

    def __init__(self, name, program, fixed, once):
        self.name, self.program, self.fixed, self.once = name, program, fixed, once

    def command(self, model, threads, *arguments):
        return [*self.program, "-m", model, "-t", str(threads), "-r", "1", "-o", "json", *self.fixed, *arguments]

    def measure(self, model, threads, prompts, decode, depth):
        """Tokens per second by (n_prompt, n_gen, n_depth), and the run's peak resident memory in bytes."""
        output, peak_bytes, _ = measured(self.command(model, threads, "-p", prompts, "-n", decode, "-d", depth))
        rows = json.loads(output)
        return {(row["n_prompt"], row["n_gen"], row["n_depth"]): row["avg_ts"] for row in rows}, peak_bytes

    def load_seconds(self, model, threads):
        """From the start of the program to its end, for one token without warm-up: nearly all is opening the model."""
        return measured(self.command(model, threads, "-p", "1", "-n", "0", *self.once))[2]


def llama_cpp(name, folder):
    return Engine(name, [os.path.join(folder, "llama-bench")], [], ["--no-warmup"])


def kazeia(program, extra):
    return Engine("kazeia" + "".join(f" {word}" for word in extra), [program, "bench"],
                  ["--no-limits", "--first-token", "0", *extra], ["--no-warmup"])
