"""Texts that are kept packed: any query gives what it gives of rows that have them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from stepscope.ingest.storage import spool
from stepscope.ingest.storage.spool import Spool, Spooled, beside, packed, unpacked
from tests.tiers import slow

Query = Callable[[pl.LazyFrame], pl.LazyFrame]
TEXTS = st.lists(st.none() | st.sampled_from(["", "{}", '{"a": 1}', "ä" * 40]), max_size=7)
COLUMNS = ["at", "kind", "args"]


@st.composite
def queries(draw: st.DrawFn) -> list[Query]:
    """A few steps, each a part of the rows or of the columns, in any order."""
    number = st.integers(0, 24)
    first, num = draw(number), draw(number)
    chosen = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True))
    steps: list[Query] = [
        lambda rows: rows.head(num),
        lambda rows: rows.tail(num),
        lambda rows: rows.slice(first, num),
        lambda rows: rows.slice(-first, num),
        lambda rows: rows.filter(pl.col("at") >= first),
        lambda rows: rows.filter(pl.col("at") == first),
        lambda rows: rows.filter(pl.col("kind") == "even"),
        lambda rows: rows.filter(pl.col("args").str.len_bytes() > 1, pl.col("at") < num),
        lambda rows: rows.filter(pl.col("args").is_null()),
        lambda rows: rows.with_columns(kind=pl.col("kind") + "!"),
        lambda rows: rows.sort("at", descending=True),
    ]
    last: list[Query] = [
        lambda rows: rows,
        lambda rows: rows.select(chosen),
        lambda rows: rows.select(pl.len()),
        lambda rows: rows.select(pl.col("args").drop_nulls().str.len_bytes().sum()),
        lambda rows: rows.select(pl.col("at").sum()),
    ]
    return [*draw(st.lists(st.sampled_from(steps), max_size=3)), draw(st.sampled_from(last))]


def rows_of(num: int) -> pl.DataFrame:
    at = pl.Series("at", range(num), pl.Int64)
    kind = pl.select(pl.when(at % 2 == 0).then(pl.lit("even")).otherwise(pl.lit("odd"))).to_series()
    return pl.DataFrame([at, kind.alias("kind")])


def spooled(parts: list[list[str | None]]) -> Spooled:
    columns = [pl.Series("args", part, pl.String) for part in parts]
    return Spooled(rows_of(sum(map(len, parts))), "args", [packed(column) for column in columns])


@given(st.lists(TEXTS, max_size=4), queries(), st.sampled_from(["in-memory", "streaming"]))
def test_any_query_gives_what_it_gives_of_a_plain_frame(
    parts: list[list[str | None]], steps: list[Query], engine: Literal["in-memory", "streaming"]
) -> None:
    table = spooled(parts)
    texts = pl.Series("args", [text for part in parts for text in part], pl.String)
    found, expected = table.lazy(), table.rows.with_columns(texts).lazy()
    for step in steps:
        found, expected = step(found), step(expected)

    assert_frame_equal(found.collect(engine=engine), expected.collect())


def test_who_asks_for_other_columns_unpacks_nothing(tmp_path: Path) -> None:
    table = spooled([["{}"] * 100, ["[]"] * 100])
    table.save(tmp_path / "args")
    files = sorted((tmp_path / "args").iterdir())
    for file in files:
        file.write_bytes(_without_texts(file.read_bytes()))
    rows = beside(table.rows.lazy(), pl.scan_parquet(files))

    assert_frame_equal(rows.select("kind", "at").collect(), table.rows.select("kind", "at"))
    assert rows.filter(pl.col("at") > 150).select(pl.len()).collect().item() == 49
    with pytest.raises(pl.exceptions.ComputeError):
        rows.select("args").collect()


def _without_texts(part: bytes) -> bytes:
    """A Parquet file of which nothing but the header and the footer are left."""
    footer_bytes = int.from_bytes(part[-8:-4], "little") + 8
    return part[:4] + bytes(len(part) - 4 - footer_bytes) + part[-footer_bytes:]


@given(st.lists(TEXTS, max_size=6), st.integers(0, 400))
def test_texts_that_were_put_on_disk_are_those_that_came(
    given_parts: list[list[str | None]], in_memory_bytes: int
) -> None:
    columns = [pl.Series("args", part, pl.String) for part in given_parts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool, "IN_MEMORY_BYTES", in_memory_bytes)
        kept = Spool()
        kept.add(packed(column) for column in columns)

    held = sum(len(part) for part in kept.parts if isinstance(part, bytes))
    told = unpacked("args", kept.parts).collect()["args"].to_list()
    assert held <= in_memory_bytes
    assert told == [text for part in given_parts for text in part]


def test_parts_on_disk_are_saved_as_those_in_memory_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [*spooled([["{}"], [None, "ä"], ['{"a": 1}']]).parts]
    first = parts[0]
    assert isinstance(first, bytes)
    monkeypatch.setattr(spool, "IN_MEMORY_BYTES", len(first))
    kept = Spool()
    kept.add(parts)

    Spooled(rows_of(4), "args", kept.parts).save(tmp_path / "saved")

    saved = sorted((tmp_path / "saved").iterdir())
    assert [type(part) is bytes for part in kept.parts] == [True, False, False]
    assert [file.read_bytes() for file in saved] == parts
    assert all(part.exists() for part in kept.parts if isinstance(part, Path))


def test_texts_stay_in_memory_where_the_disk_takes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "IN_MEMORY_BYTES", 0)
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path))

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    kept = Spool()
    kept.add(spooled([["{}"], ["x"]]).parts)

    assert unpacked("args", kept.parts).collect()["args"].to_list() == ["{}", "x"]


@slow
@given(
    st.lists(st.tuples(TEXTS, st.sampled_from(["packed", "waiting", "taken"])), max_size=8),
    st.integers(0, 400),
    st.booleans(),
)
def test_texts_that_wait_to_be_packed_keep_their_place(
    given_parts: list[tuple[list[str | None], str]], most_waiting: int, is_ahead: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool, "MOST_WAITING_BYTES", most_waiting)
        kept = Spool()
        for texts, how in given_parts:
            column = pl.Series("args", texts, pl.String)
            if how == "packed":
                kept.add([packed(column)])
            elif how == "waiting":
                kept.add_texts(column)
            else:
                kept.take(Spool(column))
        if is_ahead:
            kept.pack_ahead()
        kept.add_texts(pl.Series("args", ["last"], pl.String))

    told = unpacked("args", kept).collect()["args"].to_list()
    assert told == [text for texts, _ in given_parts for text in texts] + ["last"]
    assert len([*kept]) == len(given_parts) + 1


def test_what_waits_is_packed_where_too_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MOST_WAITING_BYTES", 25)
    made: list[int] = []

    def packed_alone(column: pl.Series) -> bytes:
        made.append(len(column))
        return packed(column)

    monkeypatch.setattr(spool, "packed", packed_alone)
    kept = Spool()

    for num in (10, 20, 30):
        kept.add_texts(pl.Series("args", ["x"] * num, pl.String))
        assert sum(made) == {10: 0, 20: 10, 30: 60}[num]
