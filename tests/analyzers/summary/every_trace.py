"""Every sample of ours and every real file beside the checkout, opened once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT

SHARED = ROOT.parent / "shared"
KINDS = (".trace", ".gz", ".pftrace")
NO_TRACES = {".md", ".tsv"}
FOLDERS = ("data/kineto", "data/logs", "data/requests", "data/swimlane", "foreign")
SAMPLES = [
    str(path.relative_to(ROOT))
    for path in sorted((ROOT / "sample_traces").iterdir())
    if path.suffix in KINDS
]
REAL = [
    str(Path("shared") / path.relative_to(SHARED))
    for folder in FOLDERS
    for path in (sorted((SHARED / folder).iterdir()) if (SHARED / folder).is_dir() else [])
    if path.suffix not in NO_TRACES
]
NONE = "no real file: ../shared is absent"
EVERY = [*SAMPLES, *(REAL or [NONE])]


def opened(name: str) -> Trace:
    """The trace of that name; skips with the reason where it cannot be opened."""
    found = _opened(name)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@cache
def _opened(name: str) -> Trace | str:
    if name == NONE:
        return NONE
    path = ROOT / name if name in SAMPLES else ROOT.parent / name
    try:
        return Trace.open(path)
    except StepscopeError as error:
        return f"{name} is no trace: {error}"
