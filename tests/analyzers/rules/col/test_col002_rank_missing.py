"""COL002: a rank did not join, with what it was doing instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.col.col002_rank_missing import RankMissing
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import collective
from tests.analyzers.rows import Row
from tests.looped import looped
from tests.traces import trace_of

SAME = [collective(rank, ordinal) for rank in (0, 1) for ordinal in range(3)]
STUCK = collective(0, 3, dur_ns=None)


def missing(*rows: Row, ranks: tuple[int, ...] = (0, 1)) -> list[Finding]:
    return RankMissing().check(trace_of(collectives=rows, ranks=ranks))


def test_a_rank_that_never_came_is_found_with_what_it_did_last() -> None:
    (found,) = missing(*SAME, STUCK)

    assert found.message == (
        "rank 1 never came to operation 3 of ep, all-reduce of 64 float32, in which rank 0 waits; "
        "it last did operation 2 of ep, all-reduce of 64 float32"
    )
    assert (found.rank, found.ts_ns) == (0, 30)


def test_a_rank_that_hangs_in_another_group_is_told_to_be_there() -> None:
    elsewhere = collective(1, 0, "broadcast", group="tp", ts_ns=40, dur_ns=None)

    found = missing(*SAME, STUCK, elsewhere)

    assert [each.evidence["missing"] for each in found] == ["rank 1", "rank 0"]
    assert found[0].message.endswith(
        "it last did operation 0 of tp, broadcast of 64 float32, and never left it"
    )


def test_a_rank_without_any_collective_is_found() -> None:
    (found,) = missing(STUCK)

    assert found.message.endswith("in which rank 0 waits; it has no collective at all")


def test_ranks_that_wait_are_counted_once_each() -> None:
    rows = [
        collective(rank, 0, dur_ns=None, expected_ranks=None, group="dp") for rank in (0, 2)
    ] + [collective(1, 9, expected_ranks=None, group="dp")]

    (found,) = missing(*rows, ranks=(0, 1, 2))

    assert (found.evidence["missing"], found.evidence["waiting"]) == ("rank 1", "2 ranks")


@looped(
    "rows",
    [
        pytest.param([STUCK | {"dur_ns": 5}], id="it ended"),
        pytest.param([STUCK, collective(1, 3, dur_ns=None)], id="both are in it"),
        pytest.param([STUCK | {"expected_ranks": "0"}], id="nobody else should join"),
        pytest.param([STUCK | {"inferred": "names"}], id="a profile ended in the middle of it"),
    ],
)
def test_other_collectives_are_clean(rows: list[Row]) -> None:
    assert missing(*SAME, *rows) == []


def test_of_a_rank_that_was_not_recorded_nothing_is_said() -> None:
    assert missing(STUCK, ranks=(0,)) == []


@looped(
    ("fault", "variant", "ordinal"),
    [("slots-not-allocated", "after", 10), ("v1-head-v2-worker", "before", 2)],
)
def test_a_worker_that_refused_a_command_is_missing(
    record: Record, fault: str, variant: str, ordinal: int
) -> None:
    (found,) = RankMissing().check(record("ep-multiplexing", variant, fault))

    assert (found.evidence["missing"], found.evidence["ordinal"]) == ("rank 1", ordinal)


@looped("variant", ["before", "after"])
def test_ranks_that_are_all_there_are_clean(record: Record, variant: str) -> None:
    assert RankMissing().check(record("ep-multiplexing", variant, max_tokens="5")) == []


def test_a_real_rank_whose_peer_was_not_profiled_is_clean(shared_data: Path) -> None:
    trace = Trace.open(shared_data / "kineto" / "hta_nccl_data.json.gz")

    assert trace.collectives.collect()["expected_ranks"].unique().to_list() == ["0,1"]
    assert RankMissing().check(trace) == []
