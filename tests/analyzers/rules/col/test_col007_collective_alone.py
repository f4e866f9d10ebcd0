"""COL007: a collective at world size 1."""

from __future__ import annotations

from pathlib import Path

from stepscope.analyzers.rules.col.col007_collective_alone import CollectiveAlone
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import collective
from tests.looped import looped
from tests.traces import trace_of


def test_collectives_of_a_rank_that_is_alone_are_one_finding() -> None:
    rows = [collective(0, ordinal, expected_ranks="0") for ordinal in range(3)]

    (found,) = CollectiveAlone().check(trace_of(collectives=rows))

    assert found.message == (
        "rank 0 issued 3 collectives of ep, and no other rank is expected in them: first "
        "all-reduce of 64 float32 in step 1"
    )
    assert (found.count, found.evidence["took_ns"]) == (3, 15)


@looped(
    ("groups", "named"),
    [
        ([""] * 35, "35 collectives, and"),
        (["ep", "tp"], "2 collectives of ep and tp, and"),
        ([f"g{number}" for number in range(35)], "35 collectives of 35 groups, and"),
    ],
)
def test_all_groups_of_a_rank_are_one_finding_and_no_name_is_empty(
    groups: list[str], named: str
) -> None:
    rows = [
        collective(0, number, expected_ranks="0", group=group)
        for number, group in enumerate(groups)
    ]

    (found,) = CollectiveAlone().check(trace_of(collectives=rows))

    assert f"rank 0 issued {named} no other rank is expected" in found.message
    assert found.severity == "error"


def test_in_a_profile_it_is_worth_knowing_and_what_was_not_measured_is_left_out() -> None:
    rows = [
        collective(0, n, expected_ranks="0", dur_ns=None, inferred="record_param_comms")
        for n in range(35)
    ]

    (found,) = CollectiveAlone().check(trace_of(collectives=rows))

    assert (found.severity, found.count) == ("info", 35)
    assert "took_ns" not in found.evidence


@looped("expected", ["0,1", "0, 1", None, ""])
def test_collectives_of_several_ranks_are_clean(expected: str | None) -> None:
    rows = [collective(0, 0, expected_ranks=expected)]

    assert CollectiveAlone().check(trace_of(collectives=rows)) == []


def test_a_broadcast_to_oneself_is_found(record: Record) -> None:
    (found,) = CollectiveAlone().check(
        record("ep-multiplexing", fault="collective-at-world-size-1")
    )

    assert (found.rank, found.count) == (0, 1)
    assert "took_ns" not in found.evidence


@looped("ranks", ["1", "2"])
def test_a_rank_that_is_alone_says_nothing(record: Record, ranks: str) -> None:
    clean = record("ep-multiplexing", ranks=ranks, max_tokens="5")
    assert CollectiveAlone().check(clean) == []


def test_real_collectives_of_two_ranks_are_clean(shared_data: Path) -> None:
    trace = Trace.open(shared_data / "kineto" / "hta_nccl_data.json.gz")

    assert CollectiveAlone().check(trace) == []
