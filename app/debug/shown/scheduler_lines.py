"""What a device's scheduler is about, in a line each: its ready queues, and its threads."""

from __future__ import annotations

from collections.abc import Mapping

from stepscope.app.debug.engine_state import State
from stepscope.app.debug.held.thread_phases import ORCHESTRATOR, Phases, thread_number
from stepscope.app.printable import plain

MOST = 6
NOT_RECORDED = "not recorded"
VERBS = {
    "submit": "submits", "wait": "waits for room", "poll": "polls", "complete": "completes",
    "skip": "skips", "dispatch": "dispatches", "sleep": "sleeps", "exit": "has left",
}  # fmt: skip
"""What is said of a thread in a phase."""


def scheduler_lines(state: State) -> tuple[str, ...]:
    """Who is ready and what threads do; nothing where no cores are known, as there is no device."""
    if not state.cores:
        return ()
    return f"ready: {ready_text(state.ready)}", f"threads: {threads_text(state.threads)}"


def ready_text(ready: Mapping[str, tuple[int, ...]] | None) -> str:
    """The tasks of each queue in its order: `AIC 17 20, MIX 3`."""
    if ready is None:
        return NOT_RECORDED
    told = [f"{plain(queue)} {_first(held)}" for queue, held in sorted(ready.items())]
    return ", ".join(told) or "none"


def threads_text(threads: Phases | None) -> str:
    """What each thread does: `0 polls, 1 sleeps; the orchestrator has left`."""
    if threads is None:
        return NOT_RECORDED
    told = [
        f"{thread_number(name)} {doing(each.phase)}"
        for name, each in threads.items()
        if name != ORCHESTRATOR
    ]
    more = [f"and {len(told) - MOST:,} more"] if len(told) > MOST else []
    said = ", ".join([*told[:MOST], *more]) or "none has begun"
    orchestrator = threads.get(ORCHESTRATOR)
    return f"{said}; the {ORCHESTRATOR} {doing(orchestrator.phase)}" if orchestrator else said


def doing(phase: str) -> str:
    """A phase as a verb; one that is not known is called by its name."""
    return VERBS.get(phase, f"is in {plain(phase)}")


def _first(tasks: tuple[int, ...]) -> str:
    more = [f"and {len(tasks) - MOST:,} more"] if len(tasks) > MOST else []
    return " ".join([*map(str, tasks[:MOST]), *more])
