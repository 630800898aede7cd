"""The steps of `./kz test` and `./kz test --long`, in order."""
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

from testing.counts import Counts, count_ctest
from testing.run import Skipped, Step, StepFailed

FORMATTER = "clang-format-19"
ARM_TESTS = ("core_test", "backend_test", "cpu_test", "verbs_test")
# Programs under sanitizers and emulators do not repeat what needs the large real models.
WITHOUT_REAL_MODELS = ["--label-exclude", "real"]
SANITIZER_ENVIRONMENT = {
    "ASAN_OPTIONS": "allow_addr2line=1:detect_stack_use_after_return=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}
MINUTE = 60


def command_step(name, *commands, **options):
    """A step that passes when its commands do; each counts as one case."""
    def work(context):
        for command in commands:
            context.must(command)
        return Counts(passed=len(commands))
    return Step(name, work, **options)


def check_format(context):
    files = []
    for top in ("src", "include", "tests", "fuzz", "bench"):
        for folder, _, names in os.walk(os.path.join(context.root, top)):
            files += [os.path.join(folder, name) for name in names if re.search(r"\.(h|hpp|c|cc|cpp)$", name)]
    context.must([FORMATTER, "--dry-run", "-Werror", *sorted(files)])
    return Counts(passed=1)


def configure(context, folder, arguments):
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    context.must(["cmake", "-B", folder, *arguments, *launcher])


def preset_build(preset, *targets):
    def work(context):
        configure(context, f"build/{preset}", ["--preset", preset, "-DKZ_TESTS=ON"])  # `kz run` leaves them out
        context.must(["ninja", "-C", f"build/{preset}", *targets])
        return Counts(passed=1)
    return work


def ctest(folder, *arguments, timeout_seconds=30 * MINUTE):
    """Runs ctest in a build folder; every GoogleTest case counts."""
    def work(context):
        results = os.path.join(context.root, folder, "test-results")
        shutil.rmtree(results, ignore_errors=True)
        os.makedirs(results)
        junit = os.path.join(results, "..", "ctest.xml")
        if os.path.exists(junit):
            os.remove(junit)
        status = context.call(["ctest", "--test-dir", folder, "--output-junit", os.path.abspath(junit),
                               "--output-on-failure", "--no-tests=error", *arguments],
                              timeout_seconds=timeout_seconds,
                              environment={"GTEST_OUTPUT": f"xml:{results}/", **SANITIZER_ENVIRONMENT})
        if not os.path.exists(junit):
            raise StepFailed(f"ctest ended with status {status} and left no result")
        counts = count_ctest(junit, results)
        if status != 0 and counts.failed == 0:
            raise StepFailed(f"ctest ended with status {status}")
        return counts
    return work


def fetch(name):
    def work(context):
        if context.call(["scripts/fetch_model", name], timeout_seconds=10 * MINUTE) != 0:
            raise Skipped("cannot be had here; the tests that need it are skipped")
        return Counts(passed=1)
    return Step("model " + name, work)


def build_fuzzers(context):
    """A build that holds the fuzz targets and what they need, nothing else."""
    configure(context, "build/fuzz", ["-S", ".", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                                      "-DCMAKE_C_COMPILER=clang-19", "-DCMAKE_CXX_COMPILER=clang++-19",
                                      "-DKZ_SANITIZE=address,undefined", "-DKZ_FUZZ=ON", "-DKZ_TESTS=OFF"])
    context.must(["ninja", "-C", "build/fuzz", *fuzz_targets(context.root)])
    return Counts(passed=1)


def fuzz_targets(root):
    folder = os.path.join(root, "fuzz")
    return sorted(name[: -len(".cpp")] for name in os.listdir(folder) if name.endswith("_fuzz.cpp"))


def fuzz(seconds):
    """The targets run side by side, one per core."""
    def work(context):
        names = fuzz_targets(context.root)
        cores = len(os.sched_getaffinity(0))
        rounds = max(1, -(-len(names) // cores))
        # With a time limit the rounds share what is left, less a margin for the summary.
        each = int(min(seconds, max(10, (context.left_seconds() - MINUTE) / rounds)))

        def run(name):
            command = ["scripts/fuzz", "--build", "build/fuzz", "--seconds", str(each), name[: -len("_fuzz")]]
            return context.call(command, timeout_seconds=each + 5 * MINUTE) == 0
        with ThreadPoolExecutor(max_workers=cores) as pool:
            survived = list(pool.map(run, names))
        counts = Counts()
        for name, ok in zip(names, survived):
            counts.add(Counts(passed=int(ok), failed=int(not ok), notes=[] if ok else [f"failed: {name}"]))
        context.log.flush()
        with open(context.log.name, encoding="utf-8") as log:
            counts.notes += [line.strip() for line in log if re.match(r"\w+: \d+ s, ", line)]
        return counts
    return work


def soak(context):
    seconds = int(min(3 * MINUTE, max(30, context.left_seconds() - MINUTE)))
    context.must(["build/release/bin/kazeia_soak", "models/kazeia-tiny-q4_0.gguf", str(seconds)])
    with open(context.log.name, encoding="utf-8") as log:
        return Counts(passed=1, notes=[line.strip() for line in log if line.startswith("soak:")])


def short_steps():
    return [
        command_step("layers", ["scripts/check_layers", "--self-test"], ["scripts/check_layers"]),
        command_step("sizes", ["scripts/check_sizes", "--self-test"], ["scripts/check_sizes"]),
        Step("format", check_format),
        Step("build", preset_build("release")),
        command_step("isa objects", ["scripts/check_isa_objects", "build/release"], needs=("build",)),
        fetch("smollm2"),
        fetch("qwen2.5-coder-0.5b"),
        Step("tests", ctest("build/release"), needs=("build",)),
        Step("build with clang", preset_build("clang", "kazeia")),
        Step("build fuzzers", build_fuzzers),
        Step("fuzz 10 s each", fuzz(10), needs=("build fuzzers",)),
        Step("build for arm", preset_build("aarch64", *ARM_TESTS)),
        Step("tests on arm (qemu)", ctest("build/aarch64", "-R", f"^({'|'.join(ARM_TESTS)})$"),
             needs=("build for arm",)),
    ]


def long_steps(fuzz_seconds):
    return [
        Step("build asan", preset_build("asan"), expected_seconds=5 * MINUTE),
        Step("tests asan", ctest("build/asan", *WITHOUT_REAL_MODELS), needs=("build asan",),
             expected_seconds=4 * MINUTE),
        Step("build tsan", preset_build("tsan"), expected_seconds=5 * MINUTE),
        Step("tests tsan", ctest("build/tsan", *WITHOUT_REAL_MODELS), needs=("build tsan",),
             expected_seconds=4 * MINUTE),
        Step("soak", soak, needs=("build",), expected_seconds=2 * MINUTE),
        Step("fuzz long", fuzz(fuzz_seconds), needs=("build fuzzers",), expected_seconds=3 * MINUTE),
    ]
