"""What is read of a large file is used before it is in the cache, and is there in the end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from polars.testing import assert_frame_equal

from stepscope.app.timeline import Timeline
from stepscope.app.timeline.lanes import kept_layout
from stepscope.ingest import opening
from stepscope.ingest.readers.chrome.reader import ChromeReader
from stepscope.ingest.schema import TABLES
from stepscope.ingest.storage import late_tables
from stepscope.ingest.storage.cache import Cache
from stepscope.ingest.storage.late_tables import LateTables
from stepscope.ingest.trace import Trace

HOUR_S = 3600.0
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
def late(monkeypatch: pytest.MonkeyPatch, kept: Cache) -> Cache:
    """Every file is large, and nothing is put into the cache by itself."""
    monkeypatch.setattr(opening, "LATE_BYTES", 0)
    monkeypatch.setattr(late_tables, "AFTER_S", HOUR_S)
    return kept


def tables_of(trace: Trace) -> LateTables:
    assert isinstance(trace._in_cache, LateTables)
    return trace._in_cache


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
