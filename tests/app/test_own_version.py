"""The version is said where stepscope is installed; elsewhere that it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from stepscope.app.own_version import NOT_INSTALLED, own_version
from tests.conftest import ROOT

WITHOUT_ITS_PACKAGE = """
import sys
from importlib import metadata
found = metadata.Distribution.from_name
def from_name(name):
    if name == "stepscope":
        raise metadata.PackageNotFoundError(name)
    return found(name)
metadata.Distribution.from_name = from_name
from stepscope.app.cli.main import main
sys.exit(max(main(words.split()) for words in sys.argv[1:]))
"""


def test_an_installed_stepscope_says_its_version() -> None:
    assert own_version() == version("stepscope")


def test_files_run_as_they_lie_have_no_version_and_do_all_the_same(tmp_path: Path) -> None:
    trace = ROOT / "sample_traces" / "mix-admission-before.trace"
    words = ["--version", f"check {trace} --format sarif --fail-on never",
             f"otel {trace} -o run.json"]  # fmt: skip

    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_ITS_PACKAGE, *words], cwd=tmp_path, text=True,
        capture_output=True, check=False, env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"stepscope {NOT_INSTALLED}\n")
    assert '"driver":{"name":"stepscope","rules":' in ran.stdout
    assert "semanticVersion" not in ran.stdout
    assert "bug" not in ran.stderr
