"""The latest rows are kept whole, and every older one is counted."""

from __future__ import annotations

import polars as pl

from stepscope.ingest.frames import conform
from stepscope.ingest.live.growing_trace import Recorded, RecordingState
from stepscope.ingest.live.recent_rows import RecentRows
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.schema import BY_NAME


def recorded(first: int, last: int, **told: object) -> Recorded:
    """A step and three of its events for each number."""
    times = range(first, last)
    steps = pl.DataFrame({"step": times, "ts_ns": times}).with_columns(kind=pl.lit("decode"))
    events = pl.DataFrame({"step": times, "ts_ns": times}).select(
        pl.all().repeat_by(3).explode(), request=pl.lit("a"), event=pl.lit("arrive")
    )
    frames = {"steps": steps, "lifecycle": events}
    rows = {
        name: [
            conform(BY_NAME[name], frame.with_columns(rank=pl.lit(0, pl.Int32))).lazy().collect()
        ]
        for name, frame in frames.items()
    }
    return Recorded(RecordingState.RECORDING, Manifest("test"), rows, **told)  # type: ignore[arg-type]  # as told


def test_as_long_as_there_is_room_all_is_whole() -> None:
    rows = RecentRows(most_rows=1000)
    rows.add(recorded(0, 100))

    assert rows.whole_since_ns is None
    assert not rows.num_left_out.total()
    assert rows.num_rows == {"steps": 100, "lifecycle": 300}


def test_what_is_let_go_is_counted_and_all_tables_begin_at_the_same_time() -> None:
    rows = RecentRows(most_rows=400)
    for first in range(0, 1000, 50):
        rows.add(recorded(first, first + 50))
        assert rows.num_rows == {"steps": first + 50, "lifecycle": 3 * (first + 50)}

    kept = {name: frame.collect() for name, frame in rows.frames().items()}
    assert rows.num_kept.total() <= 480
    since_ns = rows.whole_since_ns
    assert since_ns is not None
    assert kept["steps"]["ts_ns"].to_list() == [*range(since_ns, 1000)]
    assert kept["lifecycle"]["ts_ns"].unique().sort().to_list() == [*range(since_ns, 1000)]
    assert (rows.first_ns, rows.last_ns) == (0, 999)


def test_steps_that_were_let_go_are_drawn_and_not_judged() -> None:
    rows = RecentRows(most_rows=400, most_steps=30)
    for first in range(0, 1000, 50):
        rows.add(recorded(first, first + 50))

    drawn = rows.drawn()["steps"].collect()["step"].to_list()
    judged = rows.frames()["steps"].collect()["step"].to_list()
    assert drawn[:30] == [*range(judged[0] - 30, judged[0])]
    assert drawn[30:] == judged
    assert rows.num_older_steps == 30


def test_nothing_is_shown_of_before_rows_that_were_never_read() -> None:
    rows = RecentRows()
    rows.add(recorded(0, 10))
    rows.add(recorded(20, 30, skipped={"steps": 10, "lifecycle": 30}, whole_since_ns=20))

    assert rows.frames()["steps"].collect()["step"].to_list() == [*range(20, 30)]
    assert rows.num_rows == {"steps": 30, "lifecycle": 90}
    assert rows.num_left_out == {"steps": 20, "lifecycle": 60}
