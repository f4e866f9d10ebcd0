"""How a run ended is told, and what never was is unknown: in the table of every scenario."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stepscope.engine.device.graphs.tasks import AIC, Task
from stepscope.engine.device.run_log import Run
from stepscope.engine.device.topology import Device, Part
from stepscope.engine.device.usage import Usage
from stepscope.engine.runs.outcome import outcome
from stepscope.engine.runs.scenario import RunResult
from stepscope.engine.scenarios import SCENARIOS, scenario
from tests.engine.asked import SMALL, asked
from tests.looped import looped
from tests.tiers import slow

# With these nobody gets a token: a prompt or an output has no room at all.
NOBODY: Mapping[str, Mapping[str, str]] = {
    "slot-recycling": {"slot_tokens": "4"},
    "ep-multiplexing": {"slot_tokens": "8"},
    "fcfs-preemption": {"num_kv_blocks": "1"},
}


def run(name: str, variant: str = "after", **settings: str) -> RunResult:
    return scenario(name).record(variant, None, asked(settings))


def test_no_scenario_is_left_out() -> None:
    assert SMALL.keys() == {each.name for each in SCENARIOS}


@slow
@looped("name", SMALL)
def test_a_run_that_served_everybody_says_so(name: str) -> None:
    ran = run(name, **SMALL[name])

    assert (ran.metrics["outcome"], ran.stopped) == ("served", None)
    assert "outcome" in scenario(name).columns


@looped("name", NOBODY)
def test_a_run_that_finished_nobody_is_not_served_and_times_of_nobody_are_unknown(
    name: str,
) -> None:
    ran = run(name, **{**SMALL[name], **NOBODY[name]})

    assert str(ran.metrics["outcome"]).startswith("nobody served: ")
    assert ran.metrics["finished"] == 0
    of_somebody = {
        "equal_to_solo", "ttft_min_s", "ttft_max_s", "mean_latency_s", "decode_step_ms",
        "bytes_per_admit",
    }  # fmt: skip
    assert not of_somebody & ran.metrics.keys()


def test_a_run_in_which_no_client_waited_long_enough_says_so() -> None:
    ran = run("fcfs-preemption", "before")

    assert ran.metrics["outcome"] == "nobody served: the client timed out"


def test_some_who_were_served_are_counted() -> None:
    sixteen = {"prompt_len": "512", "block_size": "16", "num_kv_blocks": "624"}
    ran = run("fcfs-preemption", "before", **sixteen)

    finished = ran.metrics["finished"]
    assert ran.metrics["outcome"] == f"{finished} of 40 served"
    assert 0 < int(finished) < 40


def test_who_is_told_to_have_finished_without_a_token_was_not_served() -> None:
    options = asked({"fault": "ignored-told-as-finished"})

    ran = scenario("fcfs-preemption").record("after", None, options)

    assert int(ran.metrics["finished"]) == 24
    assert ran.metrics["outcome"] == "16 of 24 served"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"task_slots": "4"}, "stalled: scope deadlock: w2 e0 L0 b0 has to wait"),
        ({"fault": "lost-ring-advance"}, "stalled: "),
    ],
)
def test_a_device_that_stalls_is_told_and_its_figures_are_not(
    settings: dict[str, str], text: str
) -> None:
    ran = run("mix-admission", **settings)

    assert str(ran.metrics["outcome"]).startswith(text)
    assert ran.stopped
    assert ran.stopped.startswith("device: ")
    assert not {"makespan_us", "aic_use", "mix_wait_p50_us"} & ran.metrics.keys()


def test_waits_of_mix_blocks_are_unknown_where_there_are_none() -> None:
    ran = run("mix-admission", workload="paged-attention", groups="2", steps="1")

    assert "makespan_us" in ran.metrics
    assert not {"mix_wait_p50_us", "mix_wait_max_us"} & ran.metrics.keys()


def test_a_core_that_is_booked_twice_is_used_once() -> None:
    device, usage = Device(1, 1), Usage()
    aic = device.cores[0]
    parts = [
        Part(
            Task(number, "qk", AIC, [100]), 0, aic, AIC, 0, "running", 0, [], 0, began, began + 100
        )
        for number, began in ((1, 0), (2, 40))
    ]

    usage.add(Run(0, 140, parts), device)

    assert usage.metrics()["aic_use"] == 1


def test_a_watchdog_is_the_outcome_of_what_it_ended() -> None:
    ran = run("fcfs-preemption", incompatible="requeue")

    assert ran.stopped == ran.metrics["outcome"]
    assert str(ran.stopped).startswith("watchdog: ")


def test_an_executor_that_died_leaves_its_preempted_counted_and_the_makespan_unknown() -> None:
    ran = run("fcfs-preemption", fault="executor-dies")

    assert ran.metrics["outcome"] == "the executor died, and requests are left open"
    assert "makespan_s" not in ran.metrics


def test_a_run_of_no_requests_has_nobody_to_serve() -> None:
    assert outcome((), 0) == "nobody asked"
    assert outcome((), 3) == "nobody served"
