"""COL008: a rank is late to collectives again and again, and what that costs."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.col.col008_straggler import Straggler
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import collective
from tests.analyzers.rows import Row
from tests.ingest.derive.collectives.rank_jobs import Look, job, write_job
from tests.looped import looped
from tests.traces import trace_of

MS = 1_000_000


def met(ordinal: int, *entered: int, op: str = "all-reduce", **more: object) -> list[Row]:
    """A collective that the ranks entered so late, and left at 90 ms of its 100."""
    ranks = ",".join(map(str, range(len(entered))))
    begin = 100 * MS * ordinal
    return [
        collective(
            rank, ordinal, op, ts_ns=begin + late, dur_ns=90 * MS - late, expected_ranks=ranks
        ) | more
        for rank, late in enumerate(entered)
    ]  # fmt: skip


def straggling(*rows: Row) -> list[Finding]:
    return Straggler().check(trace_of(collectives=rows))


def test_a_rank_that_comes_last_again_and_again_is_found_with_its_cost() -> None:
    rows = [row for n in range(20) for row in met(n, 0, MS, 11 * MS)]

    (found,) = straggling(*rows)

    assert found.message == (
        "rank 2 was late to 20 of 20 all-reduce collectives of ep, by 10.0 ms on average: "
        "200.0 ms, 10% of the time"
    )
    assert (found.rank, found.count) == (2, 20)
    assert found.evidence["others_waited_ns"] == 20 * (10 + 11) * MS


@looped(
    ("entered", "ranks"),
    [
        pytest.param((0, 50, 50), "ranks 1 and 2 were", id="two of three"),
        pytest.param((0, 50, 50, 50), "ranks 1, 2 and 3 were", id="three of four"),
        pytest.param((50, 0, 0, 50), "ranks 0 and 3 were", id="half of them"),
        pytest.param((0, 0, 0, 0, 0, 0, 50, 51), "ranks 6 and 7 were", id="one a little later"),
        pytest.param((0, *(50,) * 9), "9 ranks (1, 2, 3, 4, 5, 6, 7, 8, ...) were", id="many"),
    ],
)
def test_ranks_that_come_last_together_are_found_as_one_set(
    entered: tuple[int, ...], ranks: str
) -> None:
    rows = [row for n in range(20) for row in met(n, *(MS * late for late in entered))]

    found = straggling(*rows)

    assert [each.message.partition(" late to")[0] for each in found] == [ranks]
    assert found[0].message.endswith("20 of 20 all-reduce collectives of ep, by 50.0 ms on "
                                     "average: 1.0 s, 50% of the time")  # fmt: skip


def test_a_rank_that_is_later_than_the_late_ones_is_found_besides() -> None:
    rows = [row for n in range(20) for row in met(n, 0, 50 * MS, 60 * MS)]

    both, alone = straggling(*rows)

    assert (both.evidence["ranks"], both.evidence["cost_ns"]) == ("1, 2", 1_000 * MS)
    assert (alone.rank, alone.evidence["cost_ns"]) == (2, 200 * MS)


@looped("seed", range(4))
def test_ranks_that_come_in_any_order_are_clean(seed: int) -> None:
    random = Random(seed)
    rows = [
        row for n in range(40) for row in met(n, *(random.randrange(50 * MS) for _ in range(4)))
    ]

    assert straggling(*rows) == []


def test_a_rank_that_is_the_only_one_to_be_late_may_be_in_time_most_of_the_time() -> None:
    rows = [row for n in range(80) for row in met(n, 0, 0 if n % 4 else 9 * MS)]

    (found,) = straggling(*rows)

    assert (found.rank, found.count, found.evidence["collectives"]) == (1, 20, 80)


@looped(
    ("rows", "num_found"),
    [
        pytest.param([met(n, 0, 50 * MS) for n in range(10)], 1, id="as often as counts"),
        pytest.param([met(n, 0, 50 * MS) for n in range(9)], 0, id="once less"),
        pytest.param([met(n, *((0, MS * 50) if n % 4 else (MS * 50, 0))) for n in range(20)], 1,
                     id="three of four times"),
        pytest.param([met(n, 0, 1_980_000) for n in range(10)], 1, id="a fiftieth of the time"),
        pytest.param([met(n, 0, 1_979_999) for n in range(10)], 0, id="a little less of it"),
        pytest.param([met(n, 0, 90 * MS) for n in range(10)], 1, id="in as others leave"),
    ],
)  # fmt: skip
def test_a_straggler_is_late_often_mostly_alone_and_at_a_cost(
    rows: list[list[Row]], num_found: int
) -> None:
    assert len(straggling(*(row for each in rows for row in each))) == num_found


def test_where_one_rank_alone_says_how_long_it_was_in_it_nobody_is_judged() -> None:
    rows = [row | ({"dur_ns": None} if row["rank"] else {}) for row in met(0, 0, MS)]

    assert not Straggler().applies(trace_of(collectives=rows))


def test_the_head_waits_for_a_worker_that_is_slow(record: Record) -> None:
    (found,) = Straggler().check(record("ep-multiplexing", "after", "slow-worker"))

    assert found.rank == 1
    assert found.evidence["cost_share"] == pytest.approx(0.5, abs=0.05)


@looped("ranks", ["3", "4"])
def test_it_waits_for_all_workers_that_are_slow_alike(record: Record, ranks: str) -> None:
    trace = record("ep-multiplexing", "after", "slow-worker", ranks=ranks)

    (found,) = Straggler().check(trace)

    assert found.evidence["ranks"] == ", ".join(map(str, range(1, int(ranks))))
    assert found.evidence["cost_share"] == pytest.approx(0.5, abs=0.05)
    assert Straggler().check(record("ep-multiplexing", "after", ranks=ranks)) == []


def test_clocks_that_differ_do_not_matter() -> None:
    apart = [
        row | {"ts_ns": row["ts_ns"] + 5 * MS * row["rank"]}
        for n in range(20)
        for row in met(n, 11 * MS, 0)
    ]

    (found,) = straggling(*apart)

    assert (found.rank, found.evidence["cost_ns"]) == (0, 220 * MS)


@looped(
    "rows",
    [
        pytest.param([met(n, *((0, 9 * MS) if n % 2 else (9 * MS, 0))) for n in range(20)],
                     id="now one is late, now the other"),
        pytest.param([met(n, 0, 9 * MS) for n in range(5)], id="a few times"),
        pytest.param([met(n, 0, MS // 10) for n in range(20)], id="by next to nothing"),
        pytest.param([met(n, 0, 9 * MS, op="broadcast") for n in range(20)],
                     id="waiting for what the root has to say"),
        pytest.param([[row | {"num_elements": 64 + row["rank"]}
                       for row in met(n, 0, 9 * MS, op="all_to_all")] for n in range(20)],
                     id="some exchange more than others"),
        pytest.param([met(n, 0, 9 * MS, op="sendrecv") for n in range(20)],
                     id="between two ranks only"),
        pytest.param([met(n, 0, 9 * MS)[:1] for n in range(20)], id="one rank alone"),
        pytest.param([met(n, 0, 9 * MS, dur_ns=None) for n in range(20)], id="no lengths"),
    ],
)  # fmt: skip
def test_ranks_that_nobody_waits_for_are_clean(rows: list[list[Row]]) -> None:
    assert straggling(*(row for each in rows for row in each)) == []


def test_an_exchange_of_equal_parts_is_waited_for() -> None:
    rows = [row for n in range(20) for row in met(n, 0, 9 * MS, op="all_to_all")]

    assert [found.rank for found in straggling(*rows)] == [1]


@looped("dialect", ["nccl", "rccl", "old"])
@looped("late_ms", [0, 2, 5_000])
def test_the_device_that_is_late_is_found_whenever_the_hosts_called(
    tmp_path: Path, dialect: str, late_ms: float
) -> None:
    looks = Look(dialect=dialect), Look(dialect=dialect, late_us=late_ms * 1_000)

    trace = Trace.open(write_job(tmp_path / "job", job(late_rank=1, late_us=400), *looks))

    (found,) = Straggler().check(trace)
    assert (found.rank, found.count) == (1, 24)
    assert found.evidence["cost_ns"] == pytest.approx(24 * 400_000, rel=0.02)


def test_ranks_of_which_it_is_not_known_what_they_met_in_are_not_judged(tmp_path: Path) -> None:
    looks = [Look(has_seq=False, tags="", late_us=late, first_step=late > 0) for late in (0, 2_500)]
    alike = job(num_steps=8, jitter_us=0, noise_us=0, late_rank=1)

    trace = Trace.open(write_job(tmp_path / "job", alike, *looks))

    assert not Straggler().applies(trace)


@looped("variant", ["before", "after", "v2-host-staging"])
def test_a_worker_that_waits_for_commands_is_clean(record: Record, variant: str) -> None:
    pytest.importorskip("torch")

    assert Straggler().check(record("ep-multiplexing", variant, max_tokens="5")) == []


def test_a_group_of_processes_is_no_group_of_cores() -> None:
    rows = [collective(rank, n, dur_ns=100 - rank) for rank in (0, 1) for n in range(3)]
    anything = Straggler(min_late_ns=0, min_times=1, min_share=0, min_cost=0)

    assert {each.group for each in anything.check(trace_of(collectives=rows))} == {None}
