"""What is read of a large file is used before it is in the cache, and is there in the end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import polars.selectors as cs
import pytest
from polars.testing import assert_frame_equal

from stepscope.app.timeline import Timeline
from stepscope.app.timeline.lanes import kept_layout
from stepscope.app.timeline.lanes.layout import lay_out
from stepscope.ingest import opening
from stepscope.ingest.readers.chrome.reader import ChromeReader
from stepscope.ingest.schema import TABLES
from stepscope.ingest.storage import late_tables
from stepscope.ingest.storage.cache import Cache
from stepscope.ingest.storage.late_tables import LateTables
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.tiers import slow

HOUR_S = 3600.0
MOST_BYTES = 4 << 20
"""More of a file takes seconds to read, twice."""
OPENED = """
import sys
from stepscope.ingest import opening
opening.LATE_BYTES = 0
from stepscope.ingest.trace import Trace
print(Trace.open(sys.argv[1]).num_rows("spans"))
"""


@pytest.fixture
def profile(sample_traces: Path) -> Path:
    return sample_traces / "torch_profiler_cpu.json.gz"


@pytest.fixture
def profiles(sample_traces: Path) -> list[Path]:
    """Profiles of ours, and what other people's programs wrote where that is there."""
    theirs = (ROOT.parent / "shared" / "data" / "kineto").glob("*.json*")
    small = [path for path in theirs if path.stat().st_size < MOST_BYTES]
    return [*sample_traces.glob("*.json.gz"), *small]


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch, kept: Cache) -> Cache:
    """Every file is large, and nothing is put into the cache by itself."""
    monkeypatch.setattr(opening, "LATE_BYTES", 0)
    monkeypatch.setattr(late_tables, "AFTER_S", HOUR_S)
    return kept


def tables_of(trace: Trace) -> LateTables:
    assert isinstance(trace._in_cache, LateTables)
    return trace._in_cache


def tables(trace: Trace) -> dict[str, pl.LazyFrame]:
    return {table.name: trace.table(table.name) for table in TABLES}


def names(cache: Cache) -> list[str]:
    return sorted(entry.folder.suffix for entry in cache.entries())


def test_a_large_file_is_used_before_it_is_in_the_cache(profile: Path, late: Cache) -> None:
    fresh = Trace.open(profile, cached=False)

    trace = Trace.open(profile)

    assert names(late) == []
    assert trace.cached_as
    assert trace.rows_by_table() == fresh.rows_by_table()
    tables_of(trace).keep()
    assert names(late) == [".trace"]
    for again in (trace, Trace.open(profile)):
        assert again.cached_as == trace.cached_as
        for table in TABLES:
            rows, expected = (each.table(table.name).collect() for each in (again, fresh))
            assert_frame_equal(rows, expected)


@pytest.mark.usefixtures("late")
def test_rows_of_a_large_file_are_at_hand_with_enums_for_text(profile: Path) -> None:
    trace = Trace.open(profile)

    held = trace.as_held("spans").collect()

    assert isinstance(held.schema["track"], pl.Enum)
    assert_frame_equal(held.cast({cs.enum(): pl.String}), trace.spans.collect())


@pytest.mark.usefixtures("late")
def test_tables_that_were_replaced_are_not_at_hand_as_they_were_read(profile: Path) -> None:
    trace = Trace.open(profile)

    replaced = trace.replacing({"spans": trace.spans.head(3)}, trace.manifest)

    assert replaced.as_held("spans").collect().height == 3


@slow
@pytest.mark.usefixtures("late")
def test_lanes_are_the_same_whether_text_is_at_hand_as_enums_or_not(
    profiles: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "WORTH_BYTES", 0)
    for path in profiles:
        trace = Trace.open(path)
        assert trace._held
        as_enums, as_text = lay_out(trace), lay_out(trace.replacing(tables(trace), trace.manifest))

        assert as_enums.lanes == as_text.lanes, path.name
        assert (as_enums.names, as_enums.top) == (as_text.names, as_text.top), path.name
        assert (as_enums.bounds, as_enums.called) == (as_text.bounds, as_text.called), path.name
        for a, b in zip(as_enums.sections, as_text.sections, strict=True):
            assert a.index.offsets.tolist() == b.index.offsets.tolist(), path.name
            assert a.index.state.tolist() == b.index.state.tolist(), path.name
            whole = slice(0, len(a.index))
            for rows in ("starts", "lengths", "ref"):
                of_a, of_b = (getattr(each.index, rows)[whole] for each in (a, b))
                assert of_a.tolist() == of_b.tolist(), (path.name, rows)


def test_what_is_put_into_the_cache_later_is_put_there_once(
    profile: Path, late: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = tables_of(Trace.open(profile))
    tables.keep()
    monkeypatch.setattr(Cache, "keep", lambda *_: pytest.fail("kept again"))

    tables.keep()

    assert names(late) == [".trace"]


def test_lanes_are_kept_beside_a_trace_that_is_not_in_the_cache_yet(
    profile: Path, late: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_layout, "WORTH_ROWS", 0)
    trace = Trace.open(profile)

    first = Timeline.of(trace)

    assert names(late) == [".index"]
    tables_of(trace).keep()
    monkeypatch.setattr(ChromeReader, "read", lambda *_: pytest.fail("read again"))
    monkeypatch.setattr(kept_layout, "lay_out", lambda *_: pytest.fail("laid out again"))
    again = Timeline.of(Trace.open(profile))
    assert [lane.label for lane in again.lanes] == [lane.label for lane in first.lanes]
    assert again.bounds == first.bounds


@slow
def test_a_process_that_ends_puts_it_into_the_cache_first(profile: Path, kept: Cache) -> None:
    run = subprocess.run(
        [sys.executable, "-c", OPENED, str(profile)], check=True, capture_output=True, text=True
    )

    assert not run.stderr
    assert int(run.stdout) == Trace.open(profile, cached=False).num_rows("spans")
    assert names(kept) == [".trace"]


def test_rows_that_take_much_memory_are_read_from_the_cache(
    profile: Path, late: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "HELD_BYTES", 0)

    trace = Trace.open(profile)

    assert names(late) == [".trace"]
    assert not isinstance(trace._in_cache, LateTables)
