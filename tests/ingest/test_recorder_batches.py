"""Batches that are told by what changes: readers see every row of every batch."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.compaction import compact_segment
from stepscope.ingest.recording.lasting import MOST_CHANGES, BatchRow
from stepscope.ingest.trace import Trace

COLUMNS = [
    "step", "ts_ns", "row", "request", "phase", "num_tokens", "num_computed", "prompt_len", "slot",
    "num_cached", "is_final_chunk",
]  # fmt: skip
Row = dict[str, Any]


def prefill(request: str, num_tokens: int = 8, **more: Any) -> BatchRow:
    """The row of a prompt that is computed in one step."""
    return BatchRow(request, "prefill", num_tokens, 0, 0, **more)


def batch_rows(trace: Path, *columns: str) -> list[tuple[Any, ...]]:
    return Trace.open(trace).batch_rows.sort("ts_ns", "row").select(columns).collect().rows()


def outputs(trace: Path) -> list[tuple[Any, ...]]:
    columns = ("step", "ts_ns", "request", "position", "source_step")
    return Trace.open(trace).outputs.select(columns).collect().rows()


def test_a_batch_that_goes_on_is_one_token_on_for_each_request(rec: Recorder) -> None:
    batches = rec.batches()
    batches.whole(0, 100, [prefill("a", 8), BatchRow("b", "decode", 1, 20, 3, prompt_len=17)])
    batches.again(1, 200)
    batches.again(2, 300)

    rec.close()

    said = batch_rows(rec.path, "step", "ts_ns", "row", "request", "phase", "num_tokens",
                      "num_computed", "prompt_len")  # fmt: skip
    assert said == [
        (0, 100, 0, "a", "prefill", 8, 0, None),
        (0, 100, 1, "b", "decode", 1, 20, 17),
        (1, 200, 0, "a", "decode", 1, 8, None),
        (1, 200, 1, "b", "decode", 1, 21, 17),
        (2, 300, 0, "a", "decode", 1, 9, None),
        (2, 300, 1, "b", "decode", 1, 22, 17),
    ]


def test_who_left_is_not_in_it_and_who_is_new_stands_behind_the_others(rec: Recorder) -> None:
    batches = rec.batches()
    batches.whole(0, 0, map(prefill, "abcd"))
    batches.formed(1, 1, left=["b", "nobody"], rows=[prefill("e")])
    batches.formed(2, 2, left=iter(["a", "e"]))

    rec.close()

    assert batch_rows(rec.path, "step", "row", "request") == [
        (0, 0, "a"), (0, 1, "b"), (0, 2, "c"), (0, 3, "d"),
        (1, 0, "a"), (1, 1, "c"), (1, 2, "d"), (1, 3, "e"),
        (2, 0, "c"), (2, 1, "d"),
    ]  # fmt: skip


def test_a_row_that_is_told_keeps_its_place_and_holds_for_its_step(rec: Recorder) -> None:
    batches = rec.batches()
    batches.whole(0, 0, [BatchRow("a", "prefill", 4, 0, None, 9, 2, 7), prefill("b")])
    batches.formed(1, 1, rows=[BatchRow("a", "prefill", 5, 4, 0, is_final_chunk=True)])
    batches.again(2, 2)

    rec.close()

    said = batch_rows(rec.path, *COLUMNS[3:])
    assert said[0::2] == [
        ("a", "prefill", 4, 0, 9, 7, 2, None),
        ("a", "prefill", 5, 4, 9, 7, None, True),
        ("a", "decode", 1, 9, 9, 7, None, None),
    ]


def test_outputs_are_those_of_the_rows_that_have_a_position(rec: Recorder) -> None:
    batches = rec.batches()
    batches.outputs(batches.whole(0, 0, [BatchRow("a", "prefill", 4, 0), prefill("b")]), 10)
    second = batches.formed(1, 20, rows=[BatchRow("a", "prefill", 4, 4, 0)])
    third = batches.again(2, 30)
    batches.outputs(second, 40)
    batches.outputs(third, 50, without=["b", "nobody"])

    rec.close()

    assert outputs(rec.path) == [
        (0, 10, "b", 0, 0),
        (1, 40, "a", 0, 1), (1, 40, "b", 1, 1),
        (2, 50, "a", 1, 2),
    ]  # fmt: skip


def test_an_empty_batch_goes_on_as_one(rec: Recorder) -> None:
    batches = rec.batches()
    batches.outputs(batches.whole(0, 0, []), 1)
    batches.again(1, 2)
    batches.formed(2, 3, rows=[prefill("a")])

    rec.close()

    assert batch_rows(rec.path, "step", "request") == [(2, "a")]
    assert outputs(rec.path) == []


def test_with_nothing_before_it_nothing_goes_on_and_that_is_told(rec: Recorder) -> None:
    batches = rec.batches()
    assert batches.again(0, 0) is None
    assert batches.formed(1, 1, rows=[prefill("a")]) is None
    batches.outputs(None, 2)
    batches.whole(2, 2, [prefill("a")])

    rec.close()

    assert batch_rows(rec.path, "step", "request") == [(2, "a")]
    assert Trace.open(rec.path).manifest.report is not None
    assert "no batch to go on from" in repr(Trace.open(rec.path))


@pytest.mark.parametrize(
    "bad",
    [
        ("a", None, 1), ("a", "decode", None), ("a", "decode", 1 << 70), (object(), "decode", 1),
        ("a",), 7,
    ],
)  # fmt: skip
def test_a_row_that_does_not_fit_costs_its_batch_and_all_that_go_on_from_it(
    rec: Recorder, bad: Any
) -> None:
    batches = rec.batches()
    batches.whole(0, 0, map(prefill, "ab"))
    assert batches.formed(1, 1, rows=[prefill("c"), bad]) is None
    assert batches.again(2, 2) is None
    batches.whole(3, 3, [prefill("d")])

    rec.close()

    assert {row[0] for row in batch_rows(rec.path, "step")} == {0, 3}
    assert rec.dropped["batch_rows"] >= 2 + 2
    assert rec.failed is None


def test_a_batch_after_the_close_is_dropped_with_all_its_rows(rec: Recorder) -> None:
    batches = rec.batches()
    formed = batches.whole(0, 0, map(prefill, "abc"))
    rec.close()

    batches.outputs(formed, 1)
    batches.again(1, 1)
    batches.formed(2, 2, left="a")

    assert rec.dropped == {"outputs": 3, "batch_rows": 3 + 2}


class Truth:
    """What a scheduler did, row by row, told to a recorder by what changed."""

    def __init__(self, rec: Recorder, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - nothing is kept secret with it
        self.batches = rec.batches()
        self.rows: list[Row] = []
        self.outputs: list[tuple[Any, ...]] = []
        self.running: dict[str, Row] = {}
        self.num_requests = 0

    def run(self, steps: Iterable[int]) -> Truth:
        """Form a batch in each step."""
        for step in steps:
            self.step(step)
        return self

    def step(self, step: int) -> None:
        """Let some leave, tell some anew, let some in; or change nothing."""
        draw = self.random
        for row in self.running.values():
            row |= {"phase": "decode", "num_computed": row["num_computed"] + row["num_tokens"],
                    "num_tokens": 1, "num_cached": None, "is_final_chunk": None}  # fmt: skip
            row["position"] = None if row["position"] is None else row["position"] + 1
        left, told = [], []
        if self.running and draw.random() < 0.3:
            left = draw.sample(list(self.running), draw.randint(1, len(self.running)))
        for request in left:
            del self.running[request]
        if self.running and draw.random() < 0.3:
            told.append(draw.choice(list(self.running)))
            self.running[told[0]] |= self._told()
        for _ in range(draw.choice((0, 0, 0, 1, 3))):
            self.num_requests += 1
            told.append(f"request {self.num_requests}")
            self.running[told[-1]] = {
                "prompt_len": draw.choice((None, 30)),
                "slot": draw.choice((None, 4)),
                **self._told(),
            }
        self.record(step, left, told)

    def record(self, step: int, left: list[str], told: list[str]) -> None:
        """Tell the recorder, and keep what readers have to see."""
        ts_ns = 1000 * step
        rows = [BatchRow(request, **self.running[request]) for request in told]
        if step == 0 or self.random.random() < 0.02:
            every = [BatchRow(request, **row) for request, row in self.running.items()]
            formed = self.batches.whole(step, ts_ns, every)
        elif left or told:
            formed = self.batches.formed(step, ts_ns, left, rows)
        else:
            formed = self.batches.again(step, ts_ns)
        gave = [request for request, row in self.running.items() if row["position"] is not None]
        without = self.random.sample(gave, len(gave) // 2) if self.random.random() < 0.2 else []
        self.batches.outputs(formed, ts_ns + 1, without)
        self.rows += [
            {"step": step, "ts_ns": ts_ns, "row": at, "request": request, **row}
            for at, (request, row) in enumerate(self.running.items())
        ]
        self.outputs += [
            (step, ts_ns + 1, request, self.running[request]["position"], step)
            for request in gave if request not in without
        ]  # fmt: skip

    def _told(self) -> Row:
        draw = self.random
        return {
            "phase": draw.choice(("prefill", "decode")), "num_tokens": draw.randint(1, 9),
            "num_computed": draw.randint(0, 99), "position": draw.choice((None, 0, 5)),
            "num_cached": draw.choice((None, 3)),
            "is_final_chunk": draw.choice((None, True, False)),
        }  # fmt: skip

    def assert_is(self, trace: Path) -> None:
        """Hold what readers see against what was done."""
        wanted = [tuple(row[name] for name in COLUMNS) for row in self.rows]
        assert batch_rows(trace, *COLUMNS) == wanted
        assert outputs(trace) == self.outputs


@given(seed=st.integers(0, 1 << 30), num_steps=st.integers(1, 3 * MOST_CHANGES))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_scheduler_does_readers_see_its_batches_row_by_row(
    tmp_path_factory: pytest.TempPathFactory, seed: int, num_steps: int
) -> None:
    folder = tmp_path_factory.mktemp("random")
    with Recorder(folder / "run.trace", producer="test") as rec:
        truth = Truth(rec, seed).run(range(num_steps))
        shutil.copytree(rec.path, folder / "killed.trace")

    truth.assert_is(folder / "killed.trace")
    truth.assert_is(folder / "run.trace")


@pytest.mark.usefixtures("small_segments", "no_compactor")
def test_each_segment_can_be_compacted_by_itself_while_the_run_goes_on(rec: Recorder) -> None:
    truth = Truth(rec, 1).run(range(1_200))
    full = sorted(rec.path.glob("journal.rank=0/[bo]*.seg"))
    assert len(full) > 6

    for file in full:
        compact_segment(file)
    truth.assert_is(rec.path)
    truth.run(range(1_200, 1_300))
    rec.close()

    truth.assert_is(rec.path)
    assert not list(rec.path.glob("journal*"))


def test_a_long_run_of_batches_takes_a_few_bytes_a_step(rec: Recorder) -> None:
    batches = rec.batches()
    formed = batches.whole(0, 0, [prefill(f"cmpl-{at:032x}-0", 10 + at) for at in range(64)])
    batches.outputs(formed, 1)
    for step in range(1, 2_000):
        batches.outputs(batches.again(step, 10_000_000 * step), 10_000_000 * step + 9_000_000)

    rec.close()

    size = sum(file.stat().st_size for file in rec.path.rglob("*.parquet"))
    assert Trace.open(rec.path).num_rows("outputs") == 64 * 2_000
    assert size < 50 * 2_000


@pytest.mark.parametrize("name", ["batch_rows", "outputs"])
def test_batches_whose_beginning_is_lost_are_told_as_lost(
    rec: Recorder, tmp_path: Path, name: str
) -> None:
    Truth(rec, 3).run(range(50))
    rec.steps(step=1, ts_ns=0, kind="decode")
    trace = Path(shutil.copytree(rec.path, tmp_path / "killed.trace"))
    (trace / "journal.rank=0" / "strings-000000.seg").unlink()

    opened = Trace.open(trace)

    assert opened.num_rows(name) == 0
    assert opened.num_rows("steps") == 1
    assert f"{name}-000000.seg: a batch is lost" in repr(opened)


def test_sql_and_filters_see_the_rows_too(rec: Recorder) -> None:
    batches = rec.batches()
    batches.whole(0, 0, map(prefill, "ab"))
    batches.again(5, 10)
    rec.close()
    trace = Trace.open(rec.path)

    found = trace.sql("select request, num_computed from batch_rows where step = 5 order by row")
    late = trace.batch_rows.filter(pl.col("num_computed") > 7).select("step").collect()

    assert found.rows() == [("a", 8), ("b", 8)]
    assert late["step"].to_list() == [5, 5]
