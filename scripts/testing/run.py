"""One test run: executes steps, keeps their logs, counts and times."""
import os
import signal
import subprocess
import time
from dataclasses import dataclass

from testing.counts import Counts

TAIL_LINES = 40


@dataclass
class Step:
    """A named part of a test run. `work(context)` returns Counts; it may raise StepFailed or Skipped."""
    name: str
    work: object
    needs: tuple = ()          # names of steps that must have passed
    expected_seconds: float = 0  # with a time limit: skipped unless so much is left


class StepFailed(Exception):
    pass


class Skipped(Exception):
    pass


class Context:
    """What a step works with: runs commands into the step's log, knows how much time is left."""

    def __init__(self, root, log_path, deadline):
        self.root, self.deadline = root, deadline
        self.log = open(log_path, "w", encoding="utf-8", errors="replace")

    def left_seconds(self):
        return self.deadline - time.monotonic() if self.deadline else float("inf")

    def call(self, command, timeout_seconds=3600, environment=None):
        """Runs a command; returns its exit status (124 when it had to be stopped)."""
        self.log.write(f"$ {' '.join(command)}\n")
        self.log.flush()
        timeout = max(1, min(timeout_seconds, self.left_seconds()))
        process = subprocess.Popen(command, cwd=self.root, stdin=subprocess.DEVNULL, stdout=self.log,
                                   stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})},
                                   start_new_session=True)
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            self.log.write(f"stopped after {timeout:.0f} s\n")
            return 124
        finally:
            self.log.flush()

    def must(self, command, **options):
        status = self.call(command, **options)
        if status != 0:
            raise StepFailed(f"{command[0]} ended with status {status}")


class Run:
    def __init__(self, root, limit_seconds=0):
        self.root = root
        self.started = time.monotonic()
        self.deadline = self.started + limit_seconds if limit_seconds else 0
        self.results = []  # (name, Counts, seconds, "ok" / "FAILED" / "skipped")
        self.logs = os.path.join(root, "build", "test-logs")
        os.makedirs(self.logs, exist_ok=True)

    def step(self, step):
        broken = [name for name in step.needs if not self.passed(name)]
        if broken:
            return self.record(step.name, Counts(skipped=1, notes=[f"skipped: {step.name}: {broken[0]} failed"]), 0)
        if self.deadline and self.deadline - time.monotonic() < step.expected_seconds:
            return self.record(step.name, Counts(skipped=1, notes=[f"skipped: {step.name}: no time left"]), 0)
        print(f"{step.name} ...", flush=True)
        started = time.monotonic()
        log_path = os.path.join(self.logs, step.name.replace(" ", "-") + ".log")
        context = Context(self.root, log_path, self.deadline)
        try:
            counts = step.work(context)
        except StepFailed as failure:
            counts = Counts(failed=1, notes=[f"failed: {step.name}: {failure}"])
        except Skipped as reason:
            counts = Counts(skipped=1, notes=[f"skipped: {step.name}: {reason}"])
        context.log.close()
        self.record(step.name, counts, time.monotonic() - started)
        if counts.failed:
            self.show_tail(log_path)
        return None

    def record(self, name, counts, seconds):
        state = "FAILED" if counts.failed else "ok" if counts.passed else "skipped"
        self.results.append((name, counts, seconds, state))
        print(f"  {state}: {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped, {seconds:.0f} s")
        for kind in ("", "failed", "skipped"):
            for note in self.few(counts.notes, kind):
                print(f"  {note}", flush=True)

    @staticmethod
    def few(notes, kind, most=12):
        """The first notes of a kind ("failed", "skipped", "": any other)."""
        of_kind = [note for note in notes
                   if (note.startswith(kind) if kind else not note.startswith(("failed", "skipped")))]
        return of_kind if len(of_kind) <= most else of_kind[:most] + [f"... and {len(of_kind) - most} more {kind}"]

    def passed(self, name):
        return any(done == name and state == "ok" for done, _, _, state in self.results)

    def show_tail(self, path):
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n")
        print(f"  ---- the end of {os.path.relpath(path, self.root)}")
        print("\n".join("  | " + line for line in lines[-TAIL_LINES:]), flush=True)

    def total(self):
        total = Counts()
        for _, counts, _, _ in self.results:
            total.add(counts)
        return total

    def seconds(self):
        return time.monotonic() - self.started

    def table(self):
        lines = [f"\n{'step':<28} {'passed':>7} {'failed':>7} {'skipped':>7} {'seconds':>8}"]
        for name, counts, seconds, state in self.results:
            figures = f"{counts.passed:>7} {counts.failed:>7} {counts.skipped:>7} {seconds:>8.0f}"
            lines.append(f"{name:<28} {figures}  {state}")
        lines.append(f"{'total':<28} {'':>7} {'':>7} {'':>7} {self.seconds():>8.0f}")
        return "\n".join(lines)
