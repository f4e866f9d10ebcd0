"""Fixtures of the tests of what is recorded."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording import background, segments

Script = Callable[..., "subprocess.Popen[bytes]"]

_SMALL = """
from stepscope.ingest.recording import background
from stepscope.ingest.recording import segments
segments.SMALLEST_BYTES = segments.LARGEST_BYTES = 8 << 10
background.WORTH_BYTES = 0
"""


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of 8 KiB, so that a test fills many of them."""
    monkeypatch.setattr(segments, "SMALLEST_BYTES", 8 << 10)
    monkeypatch.setattr(segments, "LARGEST_BYTES", 8 << 10)


@pytest.fixture
def no_compactor(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process beside the recorder: what it would do is left to the close."""
    monkeypatch.setattr(background.Compactor, "compact_segment", lambda *_: None)


@pytest.fixture
def rec(tmp_path: Path) -> Iterator[Recorder]:
    """A recorder of `run.trace`, closed at the end of the test if it was not before."""
    with Recorder(tmp_path / "run.trace", producer="test") as recorder:
        yield recorder


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Start a Python program in a process of its own, with segments of 8 KiB."""

    def start(source: str, *args: object) -> subprocess.Popen[bytes]:
        file = tmp_path / f"script-{os.urandom(4).hex()}.py"
        file.write_text(_SMALL + textwrap.dedent(source))
        return subprocess.Popen(
            [sys.executable, str(file), *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return start
