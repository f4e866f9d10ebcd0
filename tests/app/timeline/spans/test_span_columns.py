"""Columns of spans are the same however the spans came, and wherever they are kept."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.timeline.lanes.lane import SPAN_COLUMNS
from stepscope.app.timeline.spans.piles import OnDisk, Piles
from stepscope.app.timeline.spans.span_columns import (
    Columns,
    ColumnsBuilder,
    mapped_columns,
    of_frame,
)

SIZES = st.lists(st.sampled_from([0, 1, 3, 15, 16, 17, 40, 64, 70, 130]), min_size=1, max_size=6)


def spans_of(sizes: list[int], scale: int, seed: int) -> pl.DataFrame:
    """Spans that follow each other on lanes of so many; of two tables where there are many."""
    random = np.random.default_rng(seed)
    lane = np.repeat(np.arange(len(sizes)), sizes)
    start = np.cumsum(random.integers(0, 300, (len(lane), 2)) * scale).reshape(-1)[: len(lane)]
    rows = {
        "lane": lane, "start": start, "end": start + random.integers(0, 200, len(lane)) * scale,
        "state": random.integers(1, 6, len(lane)), "table": lane // 4,
        "ref": random.permutation(len(lane)),
    }  # fmt: skip
    return pl.DataFrame(rows).cast(SPAN_COLUMNS)  # type: ignore[arg-type]  # types by name


def built(spans: pl.DataFrame, num_lanes: int, cuts: list[int], piles: Piles | None) -> Columns:
    """Columns of the spans in parts that end before some lanes."""
    builder = ColumnsBuilder("it.", piles)
    ends = sorted({*(cut % (num_lanes + 1) for cut in cuts), num_lanes})
    for first, last in zip([0, *ends], ends, strict=False):
        own = spans.filter(pl.col("lane").is_between(first, last - 1))
        counts = np.bincount(own["lane"].to_numpy() - first, minlength=last - first)
        builder.add(own, counts)
    return builder.whole(num_lanes)


def told(columns: Columns) -> dict[str, Any]:
    names = ("offsets", "starts", "lengths", "table", "ref", "kinds", "totals", "heads_before")
    arrays = {name: getattr(columns, name)[:].tolist() for name in names}
    return arrays | {"state": columns.state[: len(columns.starts)].tolist()}


@given(SIZES, st.sampled_from([1, 10**6]), st.integers(0, 99), st.lists(st.integers(0, 9)))
def test_spans_in_parts_and_on_disk_give_the_columns_of_all_at_once(
    sizes: list[int], scale: int, seed: int, cuts: list[int]
) -> None:
    spans = spans_of(sizes, scale, seed)
    whole = of_frame(spans, len(sizes))

    with TemporaryDirectory() as folder:
        piles = OnDisk(Path(folder))
        on_disk = built(spans, len(sizes), cuts, piles)
        mapped = mapped_columns(Path(folder), "it.", len(spans), piles.types)

        assert whole.starts[:].tolist() == spans["start"].to_list()
        assert (whole.starts[:] + whole.lengths[:]).tolist() == spans["end"].to_list()
        assert whole.ref[:].tolist() == spans["ref"].to_list()
        assert whole.table.tolist() == spans["table"].to_list()
        assert told(built(spans, len(sizes), cuts, None)) == told(whole)
        assert told(on_disk) == told(mapped) == told(whole)


def test_spans_of_one_table_and_a_microsecond_take_fewer_than_ten_bytes_each() -> None:
    spans = spans_of([100_000] * 4, 10, 1).with_columns(table=pl.lit(3, pl.UInt8))

    columns = of_frame(spans.with_columns(ref=pl.int_range(len(spans), dtype=pl.UInt32)), 4)

    assert columns.num_bytes / len(spans) < 10
