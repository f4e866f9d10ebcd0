"""Rows of many lanes are there lane by lane, wherever they are put down meanwhile."""

from __future__ import annotations

import errno
import io
from contextlib import closing
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stepscope.app.timeline.spans import mixed_rows
from stepscope.app.timeline.spans.mixed_rows import MixedRows
from stepscope.ingest.times import FAR_NS

FAR = -(2**63)
COLUMNS = ["ref", "state", "ts_ns", "dispatch_ns", "end_ns"]


def rows_of(*lanes: int) -> pl.DataFrame:
    random = np.random.default_rng(len(lanes))
    times = {
        name: random.integers(-100, 100, len(lanes)) for name in ("ts_ns", "dispatch_ns", "end_ns")
    }
    numbers = {"ref": np.arange(len(lanes)), "lane": lanes, "state": np.arange(len(lanes)) % 7}
    types = {"ref": pl.UInt32, "lane": pl.UInt32, "state": pl.UInt8}
    found = pl.DataFrame(numbers | times).cast(types)  # type: ignore[arg-type]  # types by name
    ends = [None, FAR, *found["end_ns"][2:]]
    return found.with_columns(end_ns=pl.Series(ends, dtype=pl.Int64))


def put_down(rows: pl.DataFrame) -> MixedRows:
    counts = rows["lane"].value_counts().sort("lane")
    mixed = MixedRows(dict(counts.iter_rows()))
    for first in range(0, len(rows), 3):
        some = rows[first : first + 3]
        mixed.add(some, some["lane"].to_numpy())
    return mixed


@pytest.fixture(params=["on disk", "in memory", "on a disk that gets full"])
def _place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in memory":
        return
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path))
    if request.param != "on disk":

        class Full(io.BytesIO):
            def write(self, part: object, /) -> int:
                if self.tell() > 200:
                    raise OSError(errno.ENOSPC, "no room")
                return super().write(part)  # type: ignore[arg-type]  # what is written is bytes

        monkeypatch.setattr(mixed_rows, "TemporaryFile", lambda **_: Full())


@pytest.mark.usefixtures("_place")
def test_rows_of_a_lane_are_in_the_order_in_which_they_came() -> None:
    rows = rows_of(4, 1, 4, 2, 2, 1, 4, 4, 2, 4, 1)

    with closing(put_down(rows)) as mixed:
        found = {lanes: mixed.of(lanes).select(COLUMNS) for lanes in ((1,), (2, 4), (1, 2, 4))}

    for lanes, own in found.items():
        expected = pl.concat(rows.filter(pl.col("lane") == lane) for lane in lanes).select(COLUMNS)
        assert own.rows() == expected.with_columns(pl.col("end_ns").clip(-FAR_NS)).rows()
