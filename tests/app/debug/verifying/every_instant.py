"""Whether what a session shows of a device is what it held, instant by instant: `make exact`.

An instant is a time at which a core, a ready queue, or what a thread does has changed. Every
admission policy runs a few graphs, and every fault of core groups its own; a session goes through
the first instants and the last forward and backward, and jumps to some of all of them.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from stepscope.app.debug import Session
from stepscope.engine.device.admission import ADMISSIONS
from stepscope.engine.runs.rerun import run_to_its_end
from stepscope.engine.scenarios import Options, scenario
from stepscope.ingest.trace import Trace
from tests.app.debug.exact import different
from tests.app.debug.test_state import Snapshot
from tests.replays import SMALL, Run, runs

NAME = "mix-admission"
FEW: dict[str, str] = {"requests": "2", "steps": "1"}
GRAPHS: tuple[dict[str, str], ...] = (
    {}, {"workload": "moe-layer"}, {"workload": "mix-starvation"}, {"workload": "sync-mix-spill"},
    {"workload": "mix-flood"}, {"workload": "moe-layer", "task_slots": "40", "threads": "5"},
)  # fmt: skip
OF_DEVICE = ("step", "cores", "ready", "threads")
WINDOW = 500
# A core that was booked twice executes both blocks, and the silicon's slot is free once the one
# that began last has ended; the trace goes on to tell of the other.
APART = {"stale-reservation": {"cores"}}


class Instants:
    """What a device held behind each instant; of one time the last."""

    def __init__(self) -> None:
        self.held: dict[int, Snapshot] = {}

    def __call__(self, snapshot: Snapshot) -> None:
        """Keep what is of the device."""
        self.held[snapshot["ts_ns"]] = {name: snapshot[name] for name in OF_DEVICE}


def of_devices() -> Iterator[Run]:
    """Every policy with every graph, and every fault of core groups."""
    for policy in ADMISSIONS:
        for graph in GRAPHS:
            yield Run(NAME, policy.name, Options(settings={**FEW, **graph}))
    for run in runs(SMALL):
        if run.scenario == NAME and run.fault:
            yield replace(run, options=replace(run.options, settings=FEW))


def differences(run: Run, folder: Path) -> list[str]:
    """Record a run, and compare the device at its instants; a line for each way that differs."""
    seen, out = Instants(), folder / "run.trace"
    options = replace(run.options, observer=seen)
    run_to_its_end(scenario(run.scenario), run.variant, out, options)
    apart = APART.get(run.fault.name, set()) if run.fault else set()
    session, times = Session(Trace.open(out)), sorted(seen.held)
    first, last = times[:WINDOW], times[-WINDOW:]
    ways = {
        "forward": first, "backward": first[::-1], "forward to the end": last,
        "backward from the end": last[::-1],
    }  # fmt: skip
    said = {way: _walked(session, seen, each, apart) for way, each in ways.items()}
    jumps = sorted(times[:: len(times) // WINDOW + 1], key=lambda ts_ns: ts_ns * 7919 % 1009)
    said["by jumps"] = _jumped(session, seen, jumps, apart)
    return [f"{way}: {found}" for way, found in said.items() if found]


def _walked(session: Session, seen: Instants, times: Sequence[int], apart: Set[str]) -> str | None:
    """The first time on a walk from event to event at which something differs."""
    session.goto(ts_ns=times[0])
    for ts_ns in times:
        is_ahead = ts_ns > session.position.ts_ns
        while session.position.ts_ns != ts_ns:
            if (ts_ns > session.position.ts_ns) is not is_ahead:
                return f"{ts_ns} ns is not an event"
            if not (session.next("event") if is_ahead else session.back("event")):
                return f"{ts_ns} ns is not reached"
        if other := _different(session, seen.held[ts_ns], apart):
            return other
    return None


def _jumped(session: Session, seen: Instants, times: Sequence[int], apart: Set[str]) -> str | None:
    for ts_ns in times:
        session.goto(ts_ns=ts_ns)
        if other := _different(session, seen.held[ts_ns], apart):
            return other
    return None


def _different(session: Session, held: Snapshot, apart: Set[str]) -> str | None:
    shown: dict[str, Any] = session.state.as_dict()
    other = different(held, {name: shown.get(name) for name in OF_DEVICE}, apart)
    return f"at {session.position.ts_ns} ns {other}" if other else None


def main() -> int:
    """Print every run; returns 1 where one differs."""
    num_other = num = 0
    for run in of_devices():
        with tempfile.TemporaryDirectory() as folder:
            found = differences(run, Path(folder))
        num, num_other = num + 1, num_other + bool(found)
        graph = " ".join(f"{name}={value}" for name, value in run.options.settings.items())
        said = f"DIFFERENT: {'; '.join(found)}" if found else "equal"
        sys.stdout.write(f"{run} {graph}: {said}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{num} runs, {num_other} of them not as the device held them\n")
    return bool(num_other)


if __name__ == "__main__":
    sys.exit(main())
