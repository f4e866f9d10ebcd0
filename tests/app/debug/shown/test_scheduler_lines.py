"""What a device's scheduler is about is told in a line each, and what is not known as unknown."""

from __future__ import annotations

from stepscope.app.debug.engine_state import CoreSlots, State
from stepscope.app.debug.held.thread_phases import Phase
from stepscope.app.debug.shown.scheduler_lines import scheduler_lines

CORES = {0: CoreSlots()}


def test_queues_are_told_in_their_order_and_threads_by_what_they_do() -> None:
    threads = {
        "thread 0": Phase("poll", 1), "thread 1": Phase("sleep", 2),
        "orchestrator": Phase("wait", 1),
    }  # fmt: skip
    state = State(5, 1, cores=CORES, ready={"MIX": (3, 1), "AIC": tuple(range(8))}, threads=threads)

    assert scheduler_lines(state) == (
        "ready: AIC 0 1 2 3 4 5 and 2 more, MIX 3 1",
        "threads: 0 polls, 1 sleeps; the orchestrator waits for room",
    )


def test_what_an_older_trace_does_not_tell_is_not_recorded() -> None:
    assert scheduler_lines(State(5, 1, cores=CORES)) == (
        "ready: not recorded", "threads: not recorded",
    )  # fmt: skip
    assert scheduler_lines(State(5, 1)) == ()


def test_a_device_that_has_nothing_to_do_says_so() -> None:
    assert scheduler_lines(State(5, 1, cores=CORES, ready={}, threads={})) == (
        "ready: none", "threads: none has begun",
    )  # fmt: skip


def test_a_phase_from_a_file_is_no_terminal_control() -> None:
    threads = {"thread 0": Phase("\x1b[2J", 1)}

    told = scheduler_lines(State(5, 1, cores=CORES, ready={"\x1b": (1,)}, threads=threads))

    assert not any("\x1b" in line for line in told)
