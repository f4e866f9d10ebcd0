"""Packages of others, installed as pip would: a module, and what it declares."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.app.cli.conftest import Run


def write_package(folder: Path, package: str, source: str, group: str, *points: str) -> str:
    """Write a package of one module into a folder that is on the path, and give the module."""
    module = package.replace("-", "_")
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    listed = "".join(f"{point}\n" for point in points)
    (about / "entry_points.txt").write_text(f"[{group}]\n{listed}")
    (folder / f"{module}.py").write_text(source)
    return module


def stepscope(folder: Path, *words: object) -> Run:
    """The command as a user has it, with what is installed in `folder`."""
    run = subprocess.run(
        [sys.executable, "-m", "stepscope.app", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return Run(run.returncode, run.stdout, run.stderr)
