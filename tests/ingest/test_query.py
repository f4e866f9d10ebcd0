"""A query ends: in rows, in time, and before a join of all pairs takes the memory."""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from stepscope.ingest.bounded import run_apart
from stepscope.ingest.bounded.joined_pairs import MOST_PAIRS
from stepscope.ingest.errors import QueryError
from stepscope.ingest.query import Bounds, run_sql
from tests.looped import looped
from tests.tiers import slow

MANY = 100_000
FRAMES = {
    "steps": pl.LazyFrame({"step": range(MANY), "kind": ["decode"] * MANY}),
    "few": pl.LazyFrame({"kind": ["decode", "mixed"]}),
}


@looped(
    "query",
    [
        "select count(*) from steps a cross join steps b",
        "select count(*) from steps, steps b",
        "with a as (select * from steps) select sum(a.step) from a cross join a b",
        "select count(*) from steps a join steps b on a.step < b.step",
        "select * from (select * from steps a cross join few) x cross join steps y order by 1",
        "select a.step from steps a cross join steps b limit 3",
    ],
)
def test_a_join_of_all_pairs_of_many_rows_is_refused(query: str) -> None:
    with pytest.raises(QueryError, match=r"a join of all rows would look at .* pairs of them"):
        run_sql(FRAMES, query)


@looped(("query", "answer"), [
    ("select count(*) from steps a cross join few b", 2 * MANY),
    ("with m as (select max(step) as m from steps) select count(*) from steps, m "
     "where step < m - 5", MANY - 6),
    ("select count(*) from (select * from steps limit 9) a cross join steps b", 9 * MANY),
    ("select count(*) from steps a join steps b on a.step = b.step", MANY),
    ("select count(*) from steps where step > (select avg(step) from steps)", MANY // 2),
])  # fmt: skip
def test_a_join_with_few_rows_or_with_equal_columns_is_run(query: str, answer: int) -> None:
    assert run_sql(FRAMES, query, Bounds()).item() == answer


ALIKE = "select count(*) from steps a join steps b on a.kind = b.kind"
"""Makes 1e10 rows: Polars goes on with such a join after it was told to stop."""


def test_a_query_that_takes_too_long_is_stopped() -> None:
    assert MANY**2 > MOST_PAIRS

    with pytest.raises(QueryError, match=r"given up after 0\.2 s; ask for fewer rows"):
        run_sql(FRAMES, ALIKE, Bounds(seconds=0.2))


def test_a_query_that_takes_too_much_memory_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_apart, "MOST_BYTES", 1 << 30)

    with pytest.raises(QueryError, match="it makes more than has room"):
        run_sql(FRAMES, ALIKE, Bounds(seconds=300))


@slow
def test_a_chain_of_joins_may_multiply_each_time_and_has_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = {"steps": FRAMES["steps"].head(1_000)}
    joins = "from steps t0 " + " ".join(
        f"join steps t{at} on t{at}.kind = t0.kind" for at in range(1, 5)
    )
    monkeypatch.setattr(run_apart, "MOST_BYTES", 1 << 30)

    with pytest.raises(QueryError, match="it makes more than has room"):
        run_sql(few, f"select count(*) {joins}", Bounds(seconds=180))


def test_a_join_of_tables_in_files_in_memory_is_run() -> None:
    file = BytesIO()
    FRAMES["steps"].collect().write_ipc(file)
    frames = {"steps": pl.scan_ipc(BytesIO(file.getvalue()))}

    query = "select count(*) from steps a join steps b on a.step = b.step + 1"

    assert run_sql(frames, query).item() == MANY - 1


@looped(("signal_name", "why"), [
    ("SIGSEGV", "the query ended the process that ran it"), ("SIGKILL", "more than has room"),
    ("SIGABRT", "more than has room"),
])  # fmt: skip
def test_the_end_of_the_process_of_a_query_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, signal_name: str, why: str
) -> None:
    ends = tmp_path / "ends"
    ends.write_text(f"#!/bin/sh\nulimit -c 0\nkill -{signal_name[3:]} $$\n")
    ends.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(ends))

    with pytest.raises(QueryError, match=why) as ended:
        run_sql(FRAMES, "select * from few", Bounds(memory_bytes=1 << 30))

    assert len(str(ended.value).splitlines()) == 1


def test_a_process_that_fails_of_itself_says_why_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fails = tmp_path / "fails"
    fails.write_text("#!/bin/sh\necho Traceback >&2\necho OSError: the disk is full >&2\nexit 1\n")
    fails.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(fails))

    with pytest.raises(QueryError, match="OSError: the disk is full; ") as failed:
        run_sql(FRAMES, "select * from few", Bounds(memory_bytes=1 << 30))

    assert "\n" not in str(failed.value)


@pytest.mark.parametrize("query", ["select nope from steps", "select * from few where"])
def test_a_process_of_its_own_says_what_is_wrong_as_any(query: str) -> None:
    with pytest.raises(QueryError) as apart:
        run_sql(FRAMES, query, Bounds(memory_bytes=8 << 30))
    with pytest.raises(QueryError) as here:
        run_sql(FRAMES, query)

    assert str(apart.value) == str(here.value)


def test_an_answer_has_one_row_more_than_it_may_where_there_are_more() -> None:
    assert len(run_sql(FRAMES, "select * from steps", Bounds(rows=10))) == 11
    assert len(run_sql(FRAMES, "select * from few", Bounds(rows=10))) == 2


def test_an_interrupt_gives_a_query_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(
        "stepscope.ingest.query.time", SimpleNamespace(sleep=interrupt, monotonic=int)
    )
    monkeypatch.setattr(pl.LazyFrame, "collect", lambda *_args, **_more: NeverThere())

    with pytest.raises(KeyboardInterrupt):
        run_sql(FRAMES, "select * from steps", Bounds())

    assert NeverThere.num_cancelled == 1


class NeverThere:
    """A query that is under way for ever."""

    num_cancelled = 0

    def fetch(self) -> None:
        """Give nothing yet."""

    def cancel(self) -> None:
        """Note that it was given up."""
        NeverThere.num_cancelled += 1


@pytest.mark.parametrize("query", ["select nope from steps", "select * from nope", "select"])
def test_what_is_wrong_with_a_bounded_query_is_said_as_of_any(query: str) -> None:
    with pytest.raises(QueryError) as bounded:
        run_sql(FRAMES, query, Bounds())
    with pytest.raises(QueryError) as unbounded:
        run_sql(FRAMES, query)

    assert str(bounded.value) == str(unbounded.value)
