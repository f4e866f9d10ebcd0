"""TRC004: a rank recorded nothing any more while the others went on."""

from __future__ import annotations

from pathlib import Path

from stepscope.analyzers.check.run import check
from stepscope.analyzers.rules.trc.trc004_rank_lost import RankLost
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import Row, event
from tests.ingest.derive.collectives.rank_jobs import Look, job, write_job
from tests.looped import looped
from tests.traces import trace_of


def steps(rank: int, count: int, length: int = 100) -> list[Row]:
    return [
        {"rank": rank, "step": n, "ts_ns": n * length, "dur_ns": length, "kind": "decode"}
        for n in range(count)
    ]


def test_a_rank_that_stops_before_the_others_is_found() -> None:
    (found,) = RankLost().check(trace_of(steps=steps(0, 30) + steps(1, 10), ranks=(0, 1)))

    assert (found.rank, found.step, found.ts_ns, found.end_ns) == (1, 9, 1_000, 3_000)
    assert found.message == (
        "rank 1 stopped at step 9, 2.0 µs before the others did; "
        "its longest silence until then was 100 ns"
    )


def a_request(rank: int, *events: tuple[int, str]) -> list[Row]:
    return [
        {"rank": rank, "request": f"r{rank}", "ts_ns": ts_ns, "event": name, "step": 0}
        for ts_ns, name in events
    ]


@looped(("ended", "num_found"), [((1_000, "finish"), 0), ((2_500, "abort"), 1), ((0, "admit"), 1)])
def test_a_rank_whose_own_requests_had_all_ended_by_then_had_nothing_to_do(
    ended: tuple[int, str], num_found: int
) -> None:
    came = [*a_request(0, (0, "arrive"), (3_000, "finish")), *a_request(1, (0, "arrive"), ended)]
    trace = trace_of(steps=steps(0, 30) + steps(1, 10), lifecycle=came, ranks=(0, 1))

    assert len(RankLost().check(trace)) == num_found


def after_a_lull(rank: int, count: int) -> list[Row]:
    """Steps with a lull behind the second, in which nobody did anything."""
    return [row | {"ts_ns": row["ts_ns"] + 900 * (row["step"] > 1)} for row in steps(rank, count)]


@looped("num_others", [1, 7])
@looped("stops_at", [6, 12, 16])
def test_a_rank_that_stops_at_60_percent_is_found_whatever_lull_there_was(
    stops_at: int, num_others: int
) -> None:
    others = [
        row for rank in range(1, 1 + num_others) for row in after_a_lull(rank, stops_at * 5 // 3)
    ]
    trace = trace_of(steps=[*after_a_lull(0, stops_at), *others])

    (found,) = RankLost().check(trace)

    assert (found.rank, found.step) == (0, stops_at - 1)


def test_ranks_that_were_all_silent_for_long_are_not_lost_by_the_last_step() -> None:
    assert RankLost().check(trace_of(steps=after_a_lull(0, 20) + after_a_lull(1, 18))) == []


def profiled(*looks: Look, folder: Path) -> Trace:
    return Trace.open(write_job(folder / "job", job(len(looks), num_steps=10), *looks))


def test_a_profile_that_stops_at_60_percent_is_found(tmp_path: Path) -> None:
    (found,) = RankLost().check(profiled(Look(), Look(last_step=5), folder=tmp_path))

    assert found.rank == 1


def test_windows_that_end_a_step_apart_are_no_loss(tmp_path: Path) -> None:
    assert RankLost().check(profiled(Look(), Look(last_step=8), folder=tmp_path)) == []


def test_a_rank_on_a_clock_of_its_own_is_not_judged(tmp_path: Path) -> None:
    alone = Look(has_kernels=False, late_us=-60_000)

    assert not RankLost().applies(profiled(Look(has_kernels=False), alone, folder=tmp_path))


@looped(("max_gaps", "count"), [(19.0, 1), (20.0, 0)])
def test_longest_silences_are_a_threshold(max_gaps: float, count: int) -> None:
    trace = trace_of(steps=steps(0, 30) + steps(1, 10), ranks=(0, 1))

    assert len(RankLost(max_gaps=max_gaps, max_missed=99).check(trace)) == count


def test_a_rank_that_is_often_silent_for_long_is_not_lost_yet() -> None:
    assert RankLost().check(trace_of(steps=steps(0, 30) + steps(1, 2, 700))) == []


def test_a_rank_that_only_joins_collectives_gives_signs_too() -> None:
    rows = [
        {"rank": 1, "ordinal": n, "op": "all_reduce", "ts_ns": n * 100, "dur_ns": 50}
        for n in range(30)
    ]

    assert RankLost().check(trace_of(steps=steps(0, 30), collectives=rows, ranks=(0, 1))) == []


def test_a_rank_that_the_manifest_names_and_that_recorded_nothing_is_found() -> None:
    (found,) = RankLost().check(trace_of(steps=steps(0, 30), ranks=(0, 3)))

    assert found.rank == 3
    assert found.message == "rank 3 is named by the manifest and recorded nothing"


def test_a_rank_that_recorded_only_other_things_is_there() -> None:
    arrived = {"rank": 3} | event("r1", "arrive", 5)
    trace = trace_of(steps=steps(0, 30), lifecycle=[arrived], ranks=(0, 3))

    assert RankLost().check(trace) == []


def test_one_rank_alone_is_not_lost() -> None:
    assert RankLost().check(trace_of(steps=steps(0, 3))) == []


def test_a_recording_that_was_not_closed_is_said_so() -> None:
    trace = trace_of(
        steps=steps(0, 30) + steps(1, 10), ranks=(0, 1), recovered={"1": {}}, closed=False
    )

    (found,) = RankLost().check(trace)

    assert found.evidence["was closed"] == "no"


@looped(
    ("sources", "counts"),
    [
        ({"0": "vLLM 0", "1": "SGLang TP0"}, {}),
        ({"0": "SGLang TP0", "1": "SGLang TP1"}, {"TRC004": 1}),
    ],
)
def test_lines_of_several_engines_in_one_log_are_not_compared(
    sources: dict[str, str], counts: dict[str, int]
) -> None:
    both = steps(0, 30) + steps(1, 10)

    result = check(trace_of(steps=both, ranks=(0, 1), config={"sources": sources}), (RankLost(),))

    assert result.counts == counts
