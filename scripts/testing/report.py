"""docs/test-long.md: what the last long run saw."""
import datetime
import os
import platform
import subprocess


def output_of(root, *command):
    result = subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return result.stdout.strip() if result.returncode == 0 else "unknown"


def processor():
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return names[0] if names else platform.machine()
    except OSError:
        return platform.machine()


def write_report(root, run):
    """Writes the page and returns its path."""
    total = run.total()
    changed = output_of(root, "git", "status", "--porcelain", "--untracked-files=no")
    lines = [
        "# The last long test run",
        "",
        "Written by `./kz test --long`.",
        "",
        f"* date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        f"* commit: {output_of(root, 'git', 'rev-parse', 'HEAD')}" + (" and local changes" if changed else ""),
        f"* machine: {processor()}, {os.cpu_count()} cores",
        f"* duration: {run.seconds() / 60:.0f} minutes",
        f"* result: {total.passed} passed, {total.failed} failed, {total.skipped} skipped",
        "",
        "| step | passed | failed | skipped | seconds |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {name} | {counts.passed} | {counts.failed} | {counts.skipped} | {seconds:.0f} |"
              for name, counts, seconds, _ in run.results]
    notes = [f"* {name}: {note}" for name, counts, _, _ in run.results for note in counts.notes]
    if notes:
        lines += ["", "## Notes", "", *notes]
    path = os.path.join(root, "docs", "test-long.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return os.path.relpath(path, root)
