"""The tests of what is in C run with sanitizers, and these stop at what they are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.ingest.readers.chrome.decode import IS_COMPILED
from tests.conftest import ROOT
from tests.fuzz.sanitizers import SANITIZED, TESTED, can_sanitize, run_tests, sanitized
from tests.tiers import slow

pytestmark = pytest.mark.skipif(
    not (IS_COMPILED and can_sanitize()), reason="there is no gcc with libasan"
)
QUICK = "tests/ingest/readers/chrome/test_batch.py"
FAULTS = {
    "heap-use-after-free": "char *room = malloc(at); free(room); return room[0];",
    "signed integer overflow": "return 2147483647 + at;",
}


@slow
def test_the_tests_of_what_is_in_c_run_with_its_other_build(tmp_path: Path) -> None:
    run = run_tests(tmp_path, QUICK)

    assert run.returncode == 0, run.stdout + run.stderr
    for name in ("_pixels", "_scan", "_spans"):
        assert f"using {tmp_path / name}.abi3.so" in run.stdout


@slow
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_built_so_stops_at_a_fault_of_memory_or_arithmetic(
    tmp_path: Path, fault: str
) -> None:
    source = tmp_path / "faulty.c"
    source.write_text(f"#include <stdlib.h>\nint fault(int at) {{ {FAULTS[fault]} }}\n")
    built = f"os.environ['{SANITIZED}'] + '/faulty.abi3.so'"
    called = f"import ctypes, os; ctypes.CDLL({built}).fault(4)"

    run = sanitized(tmp_path, "-c", called, sources=[source])

    assert run.returncode != 0
    assert fault in run.stderr


def test_every_test_that_is_to_be_run_so_is_there() -> None:
    assert QUICK in TESTED
    assert [path for path in TESTED if not (ROOT / path).is_file()] == []
