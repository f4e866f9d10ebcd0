"""Batches that are told by what changes: readers see every row of every batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.lasting import BatchRow
from stepscope.ingest.trace import Trace
from tests.ingest.recording.batch_truth import COLUMNS, batch_rows, outputs, prefill


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


@pytest.mark.parametrize("num_changes", [3, 200])
def test_who_left_may_be_told_by_their_places(tmp_path: Path, num_changes: int) -> None:
    names = [f"{number:03}" for number in range(num_changes * 2)]
    said = []
    for way in ("by name", "by place"):
        with Recorder(tmp_path / way, producer="test") as recorder:
            batches, left = recorder.batches(), [*names]
            batches.whole(0, 0, map(prefill, left))
            for step in range(1, num_changes):
                places = sorted({step % 3, len(left) // 2})
                gone = [left[place] for place in places]
                left = [name for name in left if name not in gone]
                if way == "by name":
                    formed = batches.formed(step, step, gone)
                else:
                    formed = batches.without(step, step, places, left)
                batches.outputs(formed, step, without=left[:1])
        said.append((batch_rows(recorder.path, *COLUMNS), outputs(recorder.path)))

    assert said[0] == said[1]
    assert len(said[0][0]) > num_changes


def test_a_place_that_the_batch_has_not_costs_the_batch_and_raises_nothing(rec: Recorder) -> None:
    batches = rec.batches()
    batches.whole(0, 0, map(prefill, "ab"))

    assert batches.without(1, 1, [5], ["a"]) is None

    rec.close()
    assert rec.dropped == {"batch_rows": 1}


def test_places_in_no_batch_are_dropped_and_counted(rec: Recorder) -> None:
    batches = rec.batches()

    assert batches.without(1, 1, [0], ["a", "b"]) is None

    rec.close()
    assert rec.dropped == {"batch_rows": 2}


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


def test_outputs_without_what_is_no_list_of_requests_cost_their_step_alone(rec: Recorder) -> None:
    batches = rec.batches()
    formed = batches.whole(0, 0, [prefill("a")])

    batches.outputs(formed, 1, without=7)  # type: ignore[arg-type]  # on purpose

    rec.close()
    assert rec.dropped == {"outputs": 1}
    assert batch_rows(rec.path, "step", "request") == [(0, "a")]
