"""Whether a session over what SIGKILL leaves shows what the engine held: `make exact`.

A run is recorded by processes that are killed on their way. At every step whose batch was formed by
then the state is what the process had written of it, and the step whose batch was being formed is
no step yet.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import polars as pl

from stepscope.app.debug import Session
from stepscope.ingest.trace import Trace
from tests.app.debug.exact import (
    all_runs,
    excepted,
    first_difference,
    is_miscounted,
    named,
)
from tests.app.debug.test_state import Snapshot, Truth
from tests.app.debug.verifying.recording_process import Order
from tests.replays import SMALL, Run

TIMES = 2


class Recordings:
    """Records runs in processes of their own, one after the other."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[Recordings]:
        """Give a process that has loaded the engine, and waits for orders."""
        command = [sys.executable, "-m", "tests.app.debug.verifying.recording_process"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            yield cls(process)

    def carry_out(self, order: Order) -> tuple[int, float]:
        """Return how the recording process ended, less than 0 for a signal, and its seconds."""
        orders, said = self._process.stdin, self._process.stdout
        assert orders
        assert said
        pickle.dump(order, orders)
        orders.flush()
        ended, seconds = said.readline().split()
        return int(ended), float(seconds)


class Killed(NamedTuple):
    """What became of a run that was to be killed several times.

    `torn` counts those that left rows of a batch that was not formed; `num` all that were killed.
    """

    num: int
    torn: int
    differences: list[str]


def killed(run: Run, recordings: Recordings, folder: Path, random: Random, times: int) -> Killed:
    """Record a run, and kill it so many times at any moment, and in the first batch and another."""
    whole = Order(run.scenario, run.variant, run.options, folder / "whole.trace", folder / "whole")
    ended, seconds = recordings.carry_out(whole)
    assert ended == 0
    steps, num_bytes = told_steps(whole.told), whole.told.stat().st_size
    num_rows = sum(len(held["batch"]) for held in steps)
    a_step_s = seconds / max(len(steps), 1)
    at_any_moment = (
        replace(whole, killed_at_bytes=at, after_s=random.uniform(0, 2 * a_step_s))
        for at in (random.randrange(num_bytes) for _ in range(times))
    )
    rows = {0, random.randrange(num_rows)} if num_rows else set()
    in_a_batch = [replace(whole, killed_at_row=row) for row in sorted(rows)]
    num = num_torn = 0
    found: list[str] = []
    for number, moment in enumerate((*at_any_moment, *in_a_batch)):
        order = replace(moment, out=folder / f"{number}.trace", told=folder / f"{number}")
        ended, _ = recordings.carry_out(order)
        assert ended in (0, -signal.SIGKILL)
        if ended:
            num += 1
            trace = Trace.open(order.out)
            num_torn += _is_torn(trace)
            found += differences(run, trace, told_steps(order.told), steps)
    return Killed(num, num_torn, found)


def differences(
    run: Run, trace: Trace, told: Sequence[Snapshot], whole: Sequence[Snapshot]
) -> list[str]:
    """Compare what is left of a run with what its process told of it until it was killed.

    One step more may have been formed, and not been told when the process was killed: on a virtual
    clock it is what it was when nobody was killed.
    """
    session = Session(trace)
    shown, known = session.moments.steps, [held["step"] for held in told]
    num_begun = _num_begun(trace)
    if shown[: len(known)] != known or not len(shown) == num_begun <= len(known) + 1:
        return [f"steps {known[-3:]} were formed, and {shown[-3:]} are there"]
    if trace.manifest.clock.kind == "virtual":
        told = [*told, *whole[len(known) : num_begun]]
    ways = {"forward": [*told], "backward": [*told[::-1]]}
    apart = excepted(run)
    said = {way: first_difference(session, each, way, apart) for way, each in ways.items()}
    found = [f"{way}: {first}" for way, first in said.items() if first]
    if is_miscounted(run):
        return found
    return found + [f"told otherwise: {each}" for each in session.verify()[:1]]


def _num_begun(trace: Trace) -> int:
    of_head = trace.table("steps").filter(pl.col("rank") == 0)
    return int(of_head.select(pl.col("step").n_unique()).collect().item())


def _is_torn(trace: Trace) -> bool:
    """Whether rows are there of a batch that was not formed."""
    begun = trace.table("steps").select("rank", "step")
    rows = trace.table("batch_rows").select("rank", "step")
    return bool(len(rows.join(begun, on=["rank", "step"], how="anti").collect()))


def told_steps(told: Path) -> list[Snapshot]:
    """What a process told of each step when its batch was formed; what it tore is left out."""
    truth = Truth()
    with told.open("rb") as pieces:
        while True:
            try:
                truth(pickle.load(pieces))  # noqa: S301 - we wrote it
            except (EOFError, pickle.UnpicklingError):
                return truth.of_steps()


def main(names: list[str]) -> int:
    """Kill every run, or those of the scenarios that are named; returns 1 where one differs."""
    num_other = num = num_torn = 0
    random = Random(0)
    with Recordings.started() as recordings:
        for run in all_runs(SMALL):
            if names and run.scenario not in names:
                continue
            # The process beside a killed one may still compact what it left.
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                found = killed(run, recordings, Path(folder), random, TIMES)
            num, num_torn = num + found.num, num_torn + found.torn
            num_other += bool(found.differences)
            said = "; ".join(found.differences)
            sys.stdout.write(f"{named(run)}, killed {found.num} times: {said or 'equal'}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{num} recordings killed, {num_torn} while a batch was being formed; ")
    sys.stdout.write(f"{num_other} runs not as the engine held them\n")
    return bool(num_other)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
