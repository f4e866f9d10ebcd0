"""STV007: one request considered again and again in a step, or steps without progress."""

from __future__ import annotations

from stepscope.analyzers.rules.stv.stv007_schedule_livelock import ScheduleLivelock
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import decision
from tests.analyzers.serving_rows import decode, row
from tests.looped import looped
from tests.traces import trace_of


def put_back(num_times: int, request: str = "r1") -> list[dict[str, object]]:
    return [
        decision("request", request, "put-back", 10, step=1, reason="another bucket runs")
        for _ in range(num_times)
    ]


def test_a_request_that_is_put_back_over_and_over_in_a_step_is_found() -> None:
    rows = put_back(20) + put_back(30, "r2")

    (found,) = ScheduleLivelock().check(trace_of(decisions=rows, steps=[decode(1, 1)]))

    assert (found.request, found.step, found.count) == ("r2", 1, 50)
    assert found.message == (
        "r2 (and 1 other) was considered 30 times in step 1 and put back each time, "
        'last because "another bucket runs"'
    )


def test_a_few_times_are_clean() -> None:
    assert ScheduleLivelock().check(trace_of(decisions=put_back(16), steps=[decode(1, 1)])) == []


def test_a_batch_that_runs_again_and_again_from_the_same_tokens_is_found() -> None:
    steps = [decode(n, 2) for n in range(1, 13)]
    rows = [row(n, name, num_computed=7) for n in range(1, 13) for name in ("a", "b")]

    (found,) = ScheduleLivelock().check(trace_of(steps=steps, batch_rows=rows))

    assert found.message == (
        "the same batch ran 11 times more (steps 2 to 12) from the same tokens on, a among them"
    )
    assert (found.ts_ns, found.end_ns, found.count) == (20, 130, 1)
    assert found.evidence["steps"] == 11


@looped("stride", [1, None], ids=["gets on", "not known"])
def test_a_batch_that_gets_on_or_of_which_it_is_not_known_is_clean(stride: int | None) -> None:
    steps = [decode(n, 1) for n in range(1, 40)]
    rows = [row(n, "a", num_computed=stride and n * stride) for n in range(1, 40)]

    assert ScheduleLivelock().check(trace_of(steps=steps, batch_rows=rows)) == []


def test_the_queue_that_is_put_back_on_itself_is_found(record: Record) -> None:
    fault = "incompatible-requeued-on-drained-queue"

    (found,) = ScheduleLivelock().check(record("fcfs-preemption", fault=fault))

    assert found.evidence["reason"] == "another bucket runs"
    assert found.evidence["most times"] == 260


@each_scenario
def test_sound_engines_are_clean(record: Record, scenario: str) -> None:
    assert ScheduleLivelock().check(record(scenario)) == []
