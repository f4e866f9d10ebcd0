"""COL001: the first ordinal at which ranks' operations differ, with the verdict."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.col.col001_order_mismatch import OrderMismatch
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import collective, word
from tests.analyzers.rows import Row
from tests.looped import looped
from tests.traces import trace_of

SAME = [collective(rank, ordinal) for rank in (0, 1) for ordinal in range(3)]


def diverged(*rows: Row) -> list[Finding]:
    return OrderMismatch().check(trace_of(collectives=rows))


@looped(
    ("one", "other", "verdict"),
    [
        ({}, {"op": "broadcast"}, "kind"),
        ({}, {"dtype": "bfloat16"}, "dtype"),
        ({}, {"num_elements": 32}, "size or syntax"),
        ({"command": "prefill"}, {"command": "slot"}, "size or syntax"),
        ({"slot": 1}, {"slot": 2}, "size or syntax"),
        ({}, {"dur_ns": None}, "state"),
        ({"op": "all_to_all"}, {"op": "all_to_all", "num_elements": 9, "dur_ns": None},
         "undecided"),
    ],
)  # fmt: skip
def test_the_first_difference_has_the_verdict_of_how(one: Row, other: Row, verdict: str) -> None:
    (found,) = diverged(*SAME, collective(0, 3) | one, collective(1, 3) | other)

    assert (found.rank, found.ts_ns) == (1, 30)
    assert (found.evidence["verdict"], found.evidence["ordinal"]) == (verdict, 3)


def test_both_sequences_around_it_are_shown() -> None:
    ours = [word(0, 3, "slot", 2), collective(0, 4)]
    (found,) = diverged(*SAME, *ours, collective(1, 3, command="decode"), collective(1, 4))

    assert found.message == (
        "at operation 3 of ep broadcast of 1 uint32 (slot, slot 2) on rank 0 faces all-reduce of "
        "64 float32 (decode) on rank 1 (kind)"
    )
    assert found.evidence["rank 0"] == "[0] AR AR AR >B(slot 2)< AR"
    assert found.evidence["rank 1"] == "[0] AR AR AR >AR(decode)< AR"


def test_what_comes_after_the_first_difference_is_not_told() -> None:
    wrong = [collective(0, n) for n in (3, 4)] + [word(1, n, "slot") for n in (3, 4)]

    (found,) = diverged(*SAME, *wrong)

    assert found.evidence["ordinal"] == 3


def test_of_many_ranks_the_odd_one_is_named() -> None:
    rows = [collective(rank, 0, expected_ranks="0,1,2,3") for rank in (0, 1, 3)]
    (found,) = diverged(*rows, word(2, 0, "slot", expected_ranks="0,1,2,3"))

    assert found.rank == 2
    assert "on rank 0 faces broadcast" in found.message


@looped(
    "rows",
    [
        pytest.param([], id="the same"),
        pytest.param([collective(0, 3)], id="one is further than the other"),
        pytest.param([collective(0, 3), collective(1, 3, "ALLREDUCE")], id="another spelling"),
        pytest.param([collective(0, 3), word(1, 3, "slot", group="tp")], id="another group"),
        pytest.param([collective(0, 3), word(1, 3, "slot", expected_ranks="1,2")],
                     id="a group of that name of other ranks"),
        pytest.param([collective(0, 3, "send"), collective(1, 3, "recv")], id="a pair's own"),
        pytest.param([collective(0, 3, "all_to_all"), collective(1, 3, "alltoall",
                     num_elements=9)], id="uneven by nature"),
        pytest.param([word(0, 3, "slot"), word(1, 3, "slot", dur_ns=None)],
                     id="the root of a broadcast may leave"),
        pytest.param([collective(0, 3), collective(0, 3, "broadcast"), collective(1, 3)],
                     id="a number that a rank has twice"),
    ],
)  # fmt: skip
def test_what_matches_or_cannot_be_judged_is_clean(rows: list[Row]) -> None:
    assert diverged(*SAME, *rows) == []


def test_commands_that_are_all_said_up_front_are_found(record: Record) -> None:
    (found,) = OrderMismatch().check(
        record("ep-multiplexing", "v2-device-staging", "preambles-up-front")
    )

    assert found.message == (
        "at operation 34 of ep broadcast of 1 uint32 (slot, slot 2) on rank 0 faces all-reduce of "
        "64 float64 (decode, slot 3) on rank 1 (kind)"
    )


@looped("variant", ["before", "after", "v2-device-staging"])
def test_ranks_that_keep_in_step_are_clean(record: Record, variant: str) -> None:
    assert OrderMismatch().check(record("ep-multiplexing", variant, max_tokens="5")) == []


def _as_rank_1(trace: Trace, *left_out: int) -> Trace:
    """The real rank's collectives, and a second rank's that lack some of them."""
    rows = trace.collectives.collect()
    kept = (
        rows.sort("ordinal")
        .filter(~pl.col("ordinal").is_in(left_out))
        .with_columns(rank=pl.lit(1, pl.Int32), ordinal=pl.int_range(pl.len(), dtype=pl.Int64))
    )
    return Trace.from_tables({"collectives": pl.concat([rows, kept])}, trace.manifest)


def test_a_collective_that_one_rank_leaves_out_of_a_real_sequence_is_found(
    shared_data: Path,
) -> None:
    real = Trace.open(shared_data / "kineto" / "hta_nccl_data.json.gz")

    assert OrderMismatch().check(_as_rank_1(real)) == []
    (found,) = OrderMismatch().check(_as_rank_1(real, 4))
    assert (found.evidence["ordinal"], found.evidence["verdict"]) == (4, "size or syntax")
    (found,) = OrderMismatch().check(_as_rank_1(real, 1))
    assert (found.evidence["ordinal"], found.evidence["verdict"]) == (1, "kind")


def test_windows_of_a_profile_that_begin_apart_are_not_judged(shared_data: Path) -> None:
    real = Trace.open(shared_data / "kineto" / "hta_nccl_data.json.gz")

    assert OrderMismatch().check(_as_rank_1(real, 0, 1)) == []
