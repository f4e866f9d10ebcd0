"""Several rows of a table in one call: what is the same in all of them is given once."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.ingest.errors import ConfigError
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.trace import Trace

NAMES = ("step", "ts_ns", "request", "event", "cause", "queue_index")


def test_rows_of_one_call_share_what_is_the_same_and_lack_what_is_not_given(
    tmp_path: Path,
) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as recorder:
        _, events = recorder.several("lifecycle", NAMES, ("step", "ts_ns"), ("request", "event"))
        events(3, 30, [("a", "finish"), ("b", "abort")])

    rows = Trace.open(tmp_path / "run.trace").lifecycle.select(NAMES).collect().rows()

    assert rows == [(3, 30, "a", "finish", None, None), (3, 30, "b", "abort", None, None)]


def test_a_single_row_may_have_all_columns_and_keeps_its_place_among_the_others(
    tmp_path: Path,
) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as recorder:
        event, events = recorder.several(
            "lifecycle", NAMES, ("step", "ts_ns"), ("request", "event", "cause")
        )
        events(1, 10, [("a", "admit", None)])
        event(1, 10, "b", "preempt", "room", 2)
        events(1, 10, [("c", "admit", None)])

    rows = Trace.open(tmp_path / "run.trace").lifecycle.collect()

    assert rows.select("request", "cause", "queue_index").rows() == [
        ("a", None, None), ("b", "room", 2), ("c", None, None)
    ]  # fmt: skip
    assert rows["seq"].to_list() == [1, 2, 3]


def test_a_row_with_lists_is_one_for_each_of_their_items(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as recorder:
        _, claims = recorder.several(
            "allocations", ("step", "ts_ns", "resource", "op", "id", "owner", "block_hash"),
            ("step", "ts_ns", "resource"), ("op", "id", "owner", "block_hash"),
        )  # fmt: skip
        claims(1, 10, "kv-block", [
            ("claim", [4, 7], "a", None), ("claim", [], "b", None),
            ("share", [5, 6, 8], "c", ["five", "six"]), ("release", 9, "d", None),
        ])  # fmt: skip

    rows = Trace.open(tmp_path / "run.trace").allocations.collect()

    assert rows.select("op", "id", "owner", "block_hash").rows() == [
        ("claim", 4, "a", None), ("claim", 7, "a", None), ("share", 5, "c", "five"),
        ("share", 6, "c", "six"), ("release", 9, "d", None),
    ]  # fmt: skip


def test_a_row_that_cannot_be_recorded_costs_itself_and_no_other(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as recorder:
        _, events = recorder.several("lifecycle", NAMES, ("step", "ts_ns"), ("request", "event"))
        events(1, 10, [("a", "admit"), (object(), "admit"), ("c", "admit")])
        assert recorder.dropped == {"lifecycle": 1}

    assert Trace.open(tmp_path / "run.trace").lifecycle.collect()["request"].to_list() == ["a", "c"]


@pytest.mark.parametrize(
    ("same", "each"),
    [
        (("step", "ts_ns", "request", "event"), ()),
        (("step", "ts_ns"), ("request",)),
        (("step", "ts_ns"), ("request", "event", "lora")),
        (("step", "ts_ns"), ("request", "event", "event")),
    ],
)
def test_columns_that_make_no_row_are_refused(
    tmp_path: Path, same: tuple[str, ...], each: tuple[str, ...]
) -> None:
    recorder = Recorder(tmp_path / "run.trace", producer="test")
    with recorder, pytest.raises(ConfigError):
        recorder.several("lifecycle", NAMES, same, each)
