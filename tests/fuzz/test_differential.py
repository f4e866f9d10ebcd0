"""A short run of what `make fuzz` does for long: both ways of reading windows of events agree."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import polars as pl
import pytest

from stepscope.ingest.readers.chrome import decode
from stepscope.ingest.readers.chrome.decode import IS_COMPILED, Window, decoded, scanned
from stepscope.ingest.readers.chrome.frames import Events
from tests.conftest import ROOT
from tests.fuzz.differential import compare, windows_of
from tests.fuzz.sanitizers import can_sanitize, sanitized
from tests.fuzz.windows import Windows, real_events
from tests.tiers import slow

SCANNER = ROOT / "ingest" / "readers" / "chrome" / "_scan.c"
NUM_WINDOWS = 1_500
NUM_SANITIZED = 300

pytestmark = pytest.mark.skipif(not IS_COMPILED, reason="the scanner is not compiled")


@slow
def test_no_window_is_read_otherwise_in_one_pass_than_by_decoding() -> None:
    tally = compare(windows_of(seed=1), NUM_WINDOWS)

    assert tally.difference is None
    assert tally.num_windows == NUM_WINDOWS
    assert tally.num_scanned > NUM_WINDOWS // 3


@slow
@pytest.mark.skipif(not can_sanitize(), reason="there is no gcc with libasan")
def test_sanitizers_find_nothing_in_the_pass_in_c(tmp_path: Path) -> None:
    run = sanitized(
        tmp_path, "-m", "tests.fuzz.differential", f"--windows={NUM_SANITIZED}", "--seed=2",
        sources=[SCANNER],
    )  # fmt: skip

    assert run.returncode == 0, run.stdout + run.stderr
    assert "fine (address and undefined-behaviour sanitizers)" in run.stdout


@slow
def test_a_window_that_is_read_otherwise_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(window: Window) -> Events | None:
        events = scanned(window)
        if events is None or b'"X"' not in window:
            return events
        return replace(events, rows=events.rows.with_columns(id=pl.lit("other")))

    monkeypatch.setattr(decode, "scanned", forgetful)

    tally = compare(windows_of(seed=1), NUM_WINDOWS)

    assert tally.difference is not None
    assert b'"X"' in tally.difference


def test_the_same_seed_makes_the_same_windows() -> None:
    events = real_events()

    first, again = (list(islice(Windows(events, seed=3), 200)) for _ in range(2))

    assert first == again
    assert first != list(islice(Windows(events, seed=4), 200))


def test_a_number_is_the_first_of_two_with_its_key_whatever_is_escaped_behind_it() -> None:
    args = b'{"External id": 2049, "External id": "\\u0041"}'
    window = b'{"ph": "X", "name": "a", "ts": 1, "args": ' + args + b"}"

    events = decoded(window)

    assert events is not None
    assert events.rows["external_id"].to_list() == [2049]
    assert compare(iter([window]), 1).difference is None


@pytest.mark.parametrize("key", [r"x\"correlation", r"\"correlation", r"x\"External id"])
def test_a_key_that_ends_like_another_is_not_taken_for_it(key: str) -> None:
    plain = key.rpartition('"')[2]
    window = f'{{"ph": "X", "name": "a", "ts": 1, "args": {{"{key}": 5, "{plain}": 7}}}}'.encode()

    events = decoded(window)

    assert events is not None
    assert 7 in events.rows.select("correlation", "external_id").row(0)
    assert compare(iter([window]), 1).difference is None
