"""Builds llama-bench and llama-perplexity of llama.cpp in a private folder.

The sources are those that the source package of llama-cpp-python on PyPI carries, so that the package index is all that
is needed. Two builds:

  llama.cpp-vnni     AVX-512 VNNI, AMX off, the default compiler: the peer of the table avx512vnni
  llama.cpp-native   everything this CPU has, clang-19 (g++ 12 miscompiles its AMX path): the fastest peer
"""
import os
import shutil
import subprocess
import sys
import tarfile

VERSION = "0.3.36"
PACKAGE = f"llama_cpp_python-{VERSION}"
TARGETS = ["llama-bench", "llama-perplexity"]

COMMON = ["-DCMAKE_BUILD_TYPE=Release", "-DLLAMA_CURL=OFF", "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_BUILD_TESTS=OFF",
          "-DLLAMA_BUILD_SERVER=OFF", "-DGGML_OPENMP=OFF"]
VNNI = ["-DGGML_NATIVE=OFF", *(f"-DGGML_{feature}=ON" for feature in (
    "AVX", "AVX2", "FMA", "F16C", "BMI2", "AVX512", "AVX512_VBMI", "AVX512_VNNI", "AVX512_BF16"))]
NATIVE = ["-DGGML_NATIVE=ON", "-DCMAKE_C_COMPILER=clang-19", "-DCMAKE_CXX_COMPILER=clang++-19"]
BUILDS = {"llama.cpp-vnni": VNNI, "llama.cpp-native": NATIVE}


def call(command, log, **options):
    log.write(f"$ {' '.join(command)}\n")
    log.flush()
    if subprocess.run(command, stdout=log, stderr=log, check=False, **options).returncode != 0:
        sys.exit(f"peers: '{' '.join(command[:3])} ...' failed; see {log.name}")


def fetch_sources(folder, log):
    """The unpacked package; its build backend has to be there, because pip asks it for the package's name."""
    sources = os.path.join(folder, PACKAGE)
    if os.path.isdir(sources):
        return sources
    archive = os.path.join(folder, PACKAGE + ".tar.gz")
    if not os.path.exists(archive):
        python = os.path.join(folder, "venv", "bin", "python")
        call([sys.executable, "-m", "venv", os.path.join(folder, "venv")], log)
        call([python, "-m", "pip", "install", "-q", "scikit-build-core", "setuptools"], log)
        call([python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation",
              "-d", folder, f"llama-cpp-python=={VERSION}"], log)
    with tarfile.open(archive) as package:
        package.extractall(folder)
    return sources


def builds(folder, names, jobs):
    """Folders with the programs, by name; builds what is missing."""
    os.makedirs(folder, exist_ok=True)
    found = {}
    with open(os.path.join(folder, "build.log"), "a", encoding="utf-8") as log:
        for name in names:
            if name == "llama.cpp-native" and not shutil.which("clang++-19"):
                print("peers: no clang++-19 here, llama.cpp-native is left out", file=sys.stderr)
                continue
            build = os.path.join(folder, name)
            programs = [os.path.join(build, "bin", target) for target in TARGETS]
            if not all(os.path.exists(program) for program in programs):
                print(f"peers: building {name} (log: {log.name})", file=sys.stderr)
                sources = os.path.join(fetch_sources(folder, log), "vendor", "llama.cpp")
                call(["cmake", "-G", "Ninja", "-S", sources, "-B", build, *COMMON, *BUILDS[name]], log)
                call(["ninja", "-C", build, f"-j{jobs}", *TARGETS], log)
            found[name] = os.path.join(build, "bin")
    return found
