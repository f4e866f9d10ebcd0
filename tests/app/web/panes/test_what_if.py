from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.panes.what_if import CANCEL, LIST, START, what_section, what_told
from stepscope.app.web.resolve import resolve
from stepscope.app.web.view import View
from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.app.web.small_traces import conflict_trace
from tests.tiers import slow

PATIENCE_S = 180.0


@pytest.fixture
def loaded(
    sample_traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LoadedTrace]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    trace = Trace.open(sample_traces / stories.BEFORE)
    found = LoadedTrace(trace, check(trace))
    yield found
    found.what_ifs.close()


def told(loaded: LoadedTrace, words: str) -> str:
    return " ".join(str(each) for each in what_told(loaded, words)[0])


@slow
def test_an_address_without_the_move_runs_nothing(loaded: LoadedTrace) -> None:
    resolve(loaded, "?tab=step&what=after")

    assert loaded.what_ifs.last is None
    assert "run it" in told(loaded, "after")


def test_the_move_of_an_address_begins_a_run_and_is_not_spelled_again(loaded: LoadedTrace) -> None:
    found = resolve(loaded, f"?tab=step&what=after&go={START}")

    assert "go=" not in found.view.spell()
    assert found.view.what == "after"
    assert loaded.what_ifs.last
    resolve(loaded, f"?tab=step&go={CANCEL}")
    assert loaded.what_ifs.under_way is None
    assert "run it again" in told(loaded, "after")


@slow
def test_it_is_looked_at_again_only_while_it_is_under_way(loaded: LoadedTrace) -> None:
    resolve(loaded, f"?tab=step&what=after&go={START}")
    assert what_told(loaded, "after")[1]

    ends = time.monotonic() + PATIENCE_S
    while what_told(loaded, "after")[1]:
        assert time.monotonic() < ends
        time.sleep(0.05)
    assert "KVB003" in told(loaded, "after")


@slow
def test_nothing_is_shown_where_nothing_is_asked(loaded: LoadedTrace) -> None:
    assert what_section(loaded, View()) == []


def test_a_trace_that_cannot_be_run_otherwise_says_why() -> None:
    trace = conflict_trace()

    assert "it is in no file" in told(LoadedTrace(trace, check(trace)), LIST)
