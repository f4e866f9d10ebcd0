"""`.ci/again`: a few tests that failed are run once more, alone, and named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / ".ci" / "again"
BY_CHANCE = """
from pathlib import Path

def test_passes_alone():
    been = Path(__file__).with_suffix(".been")
    if not been.exists():
        been.touch()
        raise AssertionError
"""

LOOKS = (
    BY_CHANCE.replace("def test_passes_alone():", "def test_passes_alone(snapshot):")
    + """
    assert snapshot == "what it looks like"

def test_of_another_look(snapshot):
    assert snapshot == "what it looks like"
"""
)

PICTURE = "# name: {name}\n  'what it looks like'\n# ---\n"


def test_a_test_that_fails_only_once_is_named_and_stops_nobody(tmp_path: Path) -> None:
    done = _failed_and_again(tmp_path, BY_CHANCE)

    assert done.returncode == 0
    assert "test_passes_alone PASSED" in done.stdout
    assert "by chance" in done.stdout


def test_pictures_of_the_tests_that_are_not_run_again_stop_nobody(tmp_path: Path) -> None:
    kept = tmp_path / "__snapshots__" / "test_these.ambr"
    kept.parent.mkdir()
    looks = ("test_of_another_look", "test_passes_alone")
    pictures = "".join(PICTURE.format(name=name) for name in looks)
    kept.write_text(f"# serializer version: 1\n{pictures}")

    done = _failed_and_again(tmp_path, LOOKS)

    assert "1 snapshot unused" in done.stdout
    assert "test_passes_alone PASSED" in done.stdout
    assert done.returncode == 0


def test_a_test_that_fails_again_is_a_fault(tmp_path: Path) -> None:
    done = _failed_and_again(tmp_path, BY_CHANCE + "\ndef test_fails(): assert False\n")

    assert done.returncode != 0
    assert "test_fails FAILED" in done.stdout


def test_many_that_fail_at_once_are_not_run_again(tmp_path: Path) -> None:
    many = "".join(f"def test_{number}(): assert False\n" for number in range(6))

    done = _failed_and_again(tmp_path, many)

    assert done.returncode != 0
    assert done.stdout == "Not run again: 6 tests failed, and 1 to 5 may have failed by chance.\n"


def test_a_run_that_came_to_no_test_is_not_run_again(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()

    done = subprocess.run(
        ["bash", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode != 0
    assert "0 tests failed" in done.stdout


def _failed_and_again(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (folder / "test_these.py").write_text(tests)
    first = [str(python), "-m", "pytest", "-q", "-n", "0"]
    assert subprocess.run(first, cwd=folder, capture_output=True, check=False).returncode == 1
    return subprocess.run(["bash", SCRIPT], cwd=folder, capture_output=True, text=True, check=False)
