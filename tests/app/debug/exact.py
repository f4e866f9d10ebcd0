"""Whether the state that a session shows is what the engine held, at every step: `make exact`.

Every variant of every scenario with each of its executors, and every fault, is recorded while an
observer keeps what the engine held, on each rank, those in processes of their own included. A
session walks through the trace forward, backward and by jumps; the first step that is not
the same is printed, and what of it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import replace
from pathlib import Path

from stepscope.app.debug import Session
from stepscope.engine.executors.kinds import executor_kind
from stepscope.engine.runs.rerun import run_to_its_end
from stepscope.engine.scenarios import scenario
from stepscope.ingest.trace import Trace
from tests.app.debug.test_state import Snapshot, Truth
from tests.replays import SMALL, Run, runs

# The head moves a slot behind its scheduler's back, and says so: the trace tells where the request
# is, and the scheduler's own table, which is what the snapshot shows, where it was put first.
# The other fault drops a request from the queue and tells nobody: that one still waits, says the
# trace, and the count of its steps says that one is lost.
OTHERWISE = {"compaction-on-one-side": {"slots"}, "victim-popped-instead-of-admitted": {"waiting"}}
# A block that is given twice is free in one count and held in another.
MISCOUNTED = {"victim-popped-instead-of-admitted", "block-given-twice"}
ON_COSTS_ALONE = {"data-parallel"}
"""Variants that no executor but the simulated one runs."""


def all_runs(settings: Mapping[str, Mapping[str, str]]) -> Iterator[Run]:
    """Every variant with each executor of its scenario, and every fault with its own."""
    for run in runs(settings):
        if run.fault:
            yield run
        else:
            for executor in scenario(run.scenario).executors[
                : 1 if run.variant in ON_COSTS_ALONE else None
            ]:
                yield replace(run, options=replace(run.options, executor=executor))


def named(run: Run) -> str:
    """A run, and the executor where that is one of several."""
    executor = run.options.executor
    return f"{run} ({executor})" if executor else str(run)


def needs_torch(run: Run) -> bool:
    """Tell whether a run can only be recorded where torch is installed."""
    name = run.options.executor
    return run.needs_torch or (name is not None and executor_kind(name).needs_torch)


def differences(run: Run, folder: Path) -> list[str]:
    """Record a run, and compare each step's state on each rank; one line for each that differs."""
    truth, out = Truth(), folder / "run.trace"
    options = replace(run.options, observer=truth)
    run_to_its_end(scenario(run.scenario), run.variant, out, options)
    trace = Trace.open(out)
    found = _of_rank(run, Session(trace), truth)
    for rank, other in sorted(truth.others.items()):
        of_rank = _of_rank(run, Session(trace, rank), other)
        found += [f"rank {rank}: {each}" for each in of_rank]
    return found


def _of_rank(run: Run, session: Session, truth: Truth) -> list[str]:
    """What is not as a rank held it, on each way to its steps."""
    steps = truth.of_steps()
    known, shown = [held["step"] for held in steps], session.moments.steps
    if steps and known != shown:
        return [f"steps {known[-3:]} were formed, and {shown[-3:]} are there"]
    jumps = sorted(steps, key=lambda held: held["step"] * 7919 % 1009)
    ways = {"forward": steps, "backward": steps[::-1], "by jumps": jumps}
    apart = excepted(run)
    said = {way: first_difference(session, each, way, apart) for way, each in ways.items()}
    found = [f"{way}: {first}" for way, first in said.items() if first]
    if is_miscounted(run):
        return found
    return found + [f"told otherwise: {each}" for each in session.verify()[:1]]


def is_miscounted(run: Run) -> bool:
    """Whether a run's fault makes its steps count what they do not hold."""
    return run.fault is not None and run.fault.name in MISCOUNTED


def excepted(run: Run) -> Set[str]:
    """What of the snapshot is not compared."""
    return OTHERWISE.get(run.fault.name, set()) if run.fault else set()


def first_difference(
    session: Session, steps: list[Snapshot], way: str, apart: Set[str]
) -> str | None:
    """The first step on a way at which the state is not the engine's, and what of it."""
    for number, held in enumerate(steps):
        if number == 0 or way == "by jumps":
            session.goto(step=held["step"])
        elif not (session.next() if way == "forward" else session.back()):
            return f"step {held['step']} is not there"
        if other := different(held, session.state.as_dict(), apart):
            return f"step {held['step']} {other}"
    return None


def different(held: Snapshot, shown: Snapshot, apart: Set[str]) -> str | None:
    """What of a state is not as the engine held it, and how the first of that is."""
    keys = [key for key in {**held, **shown} if key not in apart]
    if other := [key for key in keys if held.get(key) != shown.get(key)]:
        key = other[0]
        return f"{', '.join(other)}: {held.get(key)} is {shown.get(key)}"
    return None


def compare_all(names: list[str], differences: Callable[[Run, Path], list[str]]) -> int:
    """Print every run, or those of the scenarios that are named; returns 1 where one differs."""
    num_other = num = 0
    for run in all_runs(SMALL):
        if names and run.scenario not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = differences(run, Path(folder))
        num, num_other = num + 1, num_other + bool(found)
        said = f"DIFFERENT: {'; '.join(found)}" if found else "equal"
        sys.stdout.write(f"{named(run)}: {said}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{num} runs, {num_other} of them not as the engine held them\n")
    return bool(num_other)


if __name__ == "__main__":
    sys.exit(compare_all(sys.argv[1:], differences))
