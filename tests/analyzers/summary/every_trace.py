"""Every sample of ours and every real file beside the checkout, opened once.

A test over `each_file` takes samples and small files in the quick tier, and the others in the slow
one.
"""

from __future__ import annotations

import inspect
from functools import cache, wraps
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.looped import Test, looped
from tests.tiers import slow

SHARED = ROOT.parent / "shared"
KINDS = (".trace", ".gz", ".pftrace")
NO_TRACES = {".md", ".tsv"}
FOLDERS = ("data/kineto", "data/logs", "data/requests", "data/swimlane", "foreign")
SAMPLES = [
    str(path.relative_to(ROOT))
    for path in sorted((ROOT / "sample_traces").iterdir())
    if path.suffix in KINDS
]
NONE = "no real file: ../shared is absent"
REAL = [
    str(Path("shared") / path.relative_to(SHARED))
    for folder in FOLDERS
    for path in (sorted((SHARED / folder).iterdir()) if (SHARED / folder).is_dir() else [])
    if path.suffix not in NO_TRACES
] or [NONE]


def each_file(test: Test) -> Test:
    """Run a test on every file by its `name`: on the samples, and in a slow item on real files."""

    @pytest.mark.parametrize(
        "files", [pytest.param(SAMPLES, id="samples"), pytest.param(REAL, id="real", marks=slow)]
    )
    @wraps(test)
    def run(files: list[str], **fixtures: Any) -> None:
        looped("name", files)(test)(**fixtures)

    parameters = inspect.signature(test).parameters.values()
    own = inspect.Parameter("files", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([own, *(each for each in parameters if each.name != "name")])
    run.__signature__ = signature  # what pytest asks for the fixtures
    marked: Test = run
    return marked


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
