"""`make sanitize`: the tests of what is in C, with address and undefined-behaviour sanitizers.

It is built once more, and Python is started with the sanitizers in front of everything. This is
also a plug-in of pytest, which lets the tests of that other Python use the other build.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from stepscope.app.timeline.spans import compiled
from stepscope.ingest.readers.chrome import decode
from stepscope.ingest.recording.forms import rows
from tests.conftest import ROOT

SANITIZED = "STEPSCOPE_SANITIZED_SCAN"
"""In the environment of the other Python: the folder of the other build."""
_CHROME = "tests/ingest/readers/chrome/test_"
TESTED = (
    *(f"{_CHROME}{name}.py" for name in (
        "event_windows", "batch", "numbers", "flows", "events", "damage", "repairs"
    )),
    "tests/ingest/readers/swimlane/test_split.py",
    "tests/app/timeline/spans/test_compiled.py",
    "tests/app/timeline/test_span_index.py",
    "tests/ingest/recording/forms/test_compiled_rows.py",
    "tests/ingest/recording/test_recorder.py",
    "tests/ingest/recording/test_in_two.py",
)  # fmt: skip
"""What reads Chrome JSON, whole and damaged, packs spans and paints them, and records rows."""
_USED: dict[str, tuple[ModuleType, str]] = {
    "ingest/readers/chrome/_scan.c": (decode, "_scan"),
    "app/timeline/spans/_pixels.c": (compiled, "pictures"),
    "app/timeline/spans/_spans.c": (compiled, "passes"),
    "ingest/recording/forms/_rows.c": (rows, "compiled"),
}
"""What is written in C, and where it is used: a module, and its name there."""
_FLAGS = ("-O1", "-g", "-fPIC", "-shared", "-fsanitize=address,undefined",
          "-fno-sanitize-recover=all")  # fmt: skip


def can_sanitize() -> bool:
    """Tell whether there is a compiler with the sanitizers."""
    return shutil.which("gcc") is not None and Path(_library("libasan.so")).is_absolute()


def _library(name: str) -> str:
    found = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(found, capture_output=True, text=True, check=True).stdout.strip()


def sanitized(
    folder: Path, *words: str, sources: Iterable[Path] = tuple(map(ROOT.joinpath, _USED))
) -> subprocess.CompletedProcess[str]:
    """Build `sources` with sanitizers into `folder`, and run `python WORDS` with that build."""
    include = sysconfig.get_path("include")
    for source in sources:
        built = str(folder / f"{source.stem}.abi3.so")
        subprocess.run(["gcc", *_FLAGS, f"-I{include}", str(source), "-o", built], check=True)
    environment = os.environ | {
        SANITIZED: str(folder),
        "LD_PRELOAD": " ".join(map(_library, ("libasan.so", "libubsan.so"))),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself leaks by that measure
        "POLARS_MAX_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, errors="replace", check=False,
        cwd=ROOT, env=environment,
    )  # fmt: skip


def use_sanitized() -> bool:
    """Let all that follows use the other build, where the environment names one."""
    if not (folder := os.environ.get(SANITIZED)):
        return False
    for source, (user, name) in _USED.items():
        own = Path(source)
        called = ".".join(("stepscope", *own.parent.parts, own.stem))
        built = Path(folder, f"{own.stem}.abi3.so")
        if not built.is_file():
            continue  # only some were built
        spec = importlib.util.spec_from_file_location(called, built)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        vars(user)[name] = module
    return True


def pytest_configure() -> None:
    """Use the other build in all tests: `pytest -p tests.fuzz.sanitizers`."""
    use_sanitized()


def pytest_report_header() -> str:
    """Say what the tests use."""
    return " and ".join(f"using {vars(user)[name].__file__}" for user, name in _USED.values())


def run_tests(folder: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on `tests` with the build that has sanitizers."""
    return sanitized(folder, "-m", "pytest", "-n", "0", "-p", "tests.fuzz.sanitizers", *tests)


def main() -> int:
    """Run the tests of all that is in C."""
    if not can_sanitize():
        print("not sanitized: there is no gcc with libasan here")
        return 0
    with TemporaryDirectory() as folder:
        run = run_tests(Path(folder), *TESTED)
    print(run.stdout + run.stderr, end="")
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
