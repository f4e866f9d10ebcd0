"""A mixed batch that is run in parts: how often, what the host waits for, and what is read."""

from __future__ import annotations

import pytest

from stepscope.engine.batch import DECODE, PREFILL
from stepscope.engine.executors import ExecutionFailed
from stepscope.engine.executors.segments.split import Split
from tests.engine.executors.split_batches import CHUNK, LAST_CHUNK, TOKEN, batch, prepared, reads_of
from tests.engine.rows import Rows


@pytest.mark.parametrize(("backend", "num_bodies"), [("v4", 2), ("mla", 1)])
def test_a_mixed_batch_runs_as_often_as_its_backend_has_it_and_waits_once(
    backend: str, num_bodies: int
) -> None:
    ready, _ = prepared(backend=backend)

    assert (ready.num_bodies, ready.num_syncs) == (num_bodies, 1)


def test_between_its_segments_the_host_waits_once_and_at_the_end_once_more() -> None:
    _, rows = prepared()

    waits = [row["event"] for row in rows.of("accesses", stream="host", op="wait")]
    assert waits == ["taken 0 7", "ran 7"]


@pytest.mark.parametrize("rows", [(LAST_CHUNK,), (TOKEN, TOKEN)])
def test_a_batch_of_one_phase_runs_once_and_waits_for_nothing(
    rows: tuple[tuple[str, int, bool], ...],
) -> None:
    ready, _ = prepared(of=batch(*rows))

    assert (ready.num_bodies, ready.num_syncs) == (1, 0)


def test_a_backend_that_takes_no_mixed_batch_raises_in_one_line() -> None:
    with pytest.raises(ExecutionFailed, match="the mha backend takes no mixed batches") as raised:
        prepared(backend="mha")

    assert str(raised.value).startswith("step 7, 2 prefill + 3 decode: ")
    assert prepared(of=batch(TOKEN, TOKEN), backend="mha")[0].path == "decode"


def test_two_batch_overlap_halves_a_batch_of_one_phase_and_no_mixed_one() -> None:
    halved, rows = prepared(of=batch(LAST_CHUNK, CHUNK, CHUNK), overlaps=True)

    assert halved.path == "prefill+tbo"
    assert [
        (row["phase"], row["num_rows"], row["num_tokens"], row["first_cu_len"], row["last_cu_len"])
        for row in rows.of("segments")
    ] == [("prefill", 1, 12, 0, 12), ("prefill", 2, 60, 0, 60)]
    assert prepared(overlaps=True)[0].path == "mixed"


def test_a_mixed_batch_that_is_halved_is_cut_at_the_wrong_tokens() -> None:
    ready, rows = prepared("tbo-with-mixed", overlaps=True)

    assert ready.path == "mixed+tbo"
    assert [
        (row["phase"], row["num_rows"], row["num_tokens"], row["last_cu_len"], row["positions_len"])
        for row in rows.of("segments")
    ] == [("prefill", 2, 42, 18, 18), ("prefill", 3, 3, 27, 27)]


def test_a_plan_that_is_not_cloned_is_read_as_the_decode_segment_left_it() -> None:
    both = batch(CHUNK, (DECODE, 9, True))
    reads = reads_of(prepared("plans-not-cloned", of=both, ratios=(4,))[1])

    assert [
        (row["buffer"], row["first"], row["last"], row["epoch"])
        for row in reads
        if row["segment"] == 0 and row["epoch"] == 2
    ] == [("shared compress_plan_4", 0, 2, 2)]


def test_each_ratio_has_a_plan_of_its_own_and_a_copy_of_it() -> None:
    long = batch((PREFILL, 260, True), (DECODE, 9, True))
    reads = reads_of(prepared(of=long, ratios=(4, 128))[1])

    plans = [(each["buffer"], each["last"]) for each in reads if "plan" in each["buffer"]]
    assert plans == [
        ("cloned compress_plan_4", 65), ("cloned compress_plan_128", 2),
        ("shared compress_plan_4", 2),
    ]  # fmt: skip


def test_lengths_that_nobody_writes_for_the_decodes_are_the_prompts() -> None:
    reads = reads_of(prepared("lengths-stale")[1])

    assert [
        (row["segment"], row["buffer"], row["first"], row["last"], row["epoch"])
        for row in reads
        if row["buffer"].endswith("cu_seqlens_q")
    ] == [(0, "cloned cu_seqlens_q", 0, 3, 1), (1, "shared cu_seqlens_q", 0, 3, 1)]


def test_decodes_find_in_a_stale_region_what_stood_there_before() -> None:
    rows, made = Rows(), Split(frozenset({"decode-region-stale"}))
    made.prepare(batch(*[TOKEN] * 5), 6, 50, rows.recorder)
    made.prepare(batch((PREFILL, 2, True), TOKEN, TOKEN, TOKEN), 7, 100, rows.recorder)

    assert [
        (row["buffer"], row["first"], row["last"], row["epoch"])
        for row in reads_of(rows)
        if row["segment"] == 1 and row["epoch"] != 3
    ] == [("shared input_ids", 0, 2, 2), ("shared input_ids", 2, 3, 1)]
