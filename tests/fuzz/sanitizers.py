"""`make sanitize`: the tests of the pass in C, with address and undefined-behaviour sanitizers.

The pass is built once more, and Python is started with the sanitizers in front of everything. It is
also a plug-in of pytest, which lets the tests of that other Python scan with the other build.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory

from stepscope.ingest.readers.chrome import decode
from tests.conftest import ROOT

SANITIZED = "STEPSCOPE_SANITIZED_SCAN"
"""In the environment of the other Python: where the other build is."""
_CHROME = "tests/ingest/readers/chrome/test_"
TESTED = (
    *(f"{_CHROME}{name}.py" for name in (
        "event_windows", "batch", "numbers", "flows", "events", "damage", "repairs"
    )),
    "tests/ingest/readers/swimlane/test_split.py",
)  # fmt: skip
"""What reads Chrome JSON, whole and damaged."""
_SOURCE = ROOT / "ingest" / "readers" / "chrome" / "_scan.c"
_FLAGS = ("-O1", "-g", "-fPIC", "-shared", "-fsanitize=address,undefined",
          "-fno-sanitize-recover=all")  # fmt: skip


def can_sanitize() -> bool:
    """Tell whether there is a compiler with the sanitizers."""
    return shutil.which("gcc") is not None and Path(_library("libasan.so")).is_absolute()


def _library(name: str) -> str:
    found = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(found, capture_output=True, text=True, check=True).stdout.strip()


def sanitized(
    folder: Path, *words: str, source: Path = _SOURCE
) -> subprocess.CompletedProcess[str]:
    """Build `source` with sanitizers into `folder`, and run `python WORDS` with that build."""
    built = folder / f"{source.stem}.abi3.so"
    include = sysconfig.get_path("include")
    subprocess.run(["gcc", *_FLAGS, f"-I{include}", str(source), "-o", str(built)], check=True)
    environment = os.environ | {
        SANITIZED: str(built),
        "LD_PRELOAD": " ".join(map(_library, ("libasan.so", "libubsan.so"))),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself leaks by that measure
        "POLARS_MAX_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, errors="replace", check=False,
        cwd=ROOT, env=environment,
    )  # fmt: skip


def use_sanitized() -> bool:
    """Let all that follows scan with the other build, where the environment names one."""
    if not (built := os.environ.get(SANITIZED)):
        return False
    spec = importlib.util.spec_from_file_location("stepscope.ingest.readers.chrome._scan", built)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(decode)["_scan"] = module
    return True


def pytest_configure() -> None:
    """Scan with the other build in all tests: `pytest -p tests.fuzz.sanitizers`."""
    use_sanitized()


def pytest_report_header() -> str:
    """Say what the tests scan with."""
    return f"scanning with {vars(decode)['_scan'].__file__}"


def run_tests(folder: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on `tests` with the build that has sanitizers."""
    return sanitized(folder, "-m", "pytest", "-n", "0", "-p", "tests.fuzz.sanitizers", *tests)


def main() -> int:
    """Run the tests of all that reads Chrome JSON."""
    if not can_sanitize():
        print("not sanitized: there is no gcc with libasan here")
        return 0
    with TemporaryDirectory() as folder:
        run = run_tests(Path(folder), *TESTED)
    print(run.stdout + run.stderr, end="")
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
