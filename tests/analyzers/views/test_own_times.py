"""The time that each step had to itself: overlaps count once, and stages each for themselves."""

from __future__ import annotations

from stepscope.analyzers.views.batches import formed, own_times
from tests.analyzers.rows import Row
from tests.traces import trace_of


def stage(number: int, pp_stage: int | None, ts_ns: int, dur_ns: int = 10) -> Row:
    return {
        "step": number, "ts_ns": ts_ns, "dur_ns": dur_ns, "kind": "decode", "pp_stage": pp_stage,
    }  # fmt: skip


AHEAD = [stage(1, None, 0), stage(2, None, 5), stage(3, None, 12, 3)]
PIPELINE = [stage(1, 0, 0), stage(1, 1, 10), stage(2, 0, 10), stage(2, 1, 20)]


def times(*steps: Row, of: tuple[str, ...] = ("rank", "pp_stage")) -> list[tuple[int, int, int]]:
    told = own_times(formed(trace_of(steps=list(steps))), of)
    return told.select("step", "from_ns", "to_ns").collect().rows()


def test_what_runs_beside_an_earlier_step_counts_from_where_that_ends() -> None:
    assert times(*AHEAD) == [(1, 0, 10), (2, 10, 15), (3, 15, 15)]


def test_stages_of_a_pipeline_have_their_own_times_though_they_run_beside_each_other() -> None:
    assert times(*PIPELINE) == [(1, 0, 10), (1, 10, 20), (2, 10, 20), (2, 20, 30)]


def test_a_rank_as_a_whole_is_busy_once_however_many_of_its_stages_are() -> None:
    told = times(*PIPELINE, of=("rank",))

    assert sum(to_ns - from_ns for _, from_ns, to_ns in told) == 30
