"""Whether the state that a session shows behind every change is what the engine held: `make exact`.

A change is a row that bears a `seq`. The first that is not the same is printed, and what of it.
"""

from __future__ import annotations

import sys
from collections.abc import Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from stepscope.app.debug import Session
from stepscope.engine.runs.rerun import run_to_its_end
from stepscope.engine.scenarios import scenario
from stepscope.ingest.trace import Trace
from tests.app.debug.exact import compare_all, different, excepted
from tests.app.debug.test_state import Snapshot, Truth
from tests.replays import Run

# Behind a change the session's time is the latest that was told, and the engine's is now. What the
# device holds is told by time alone, when their step has run: each instant of theirs is compared in
# `every_instant`.
LEFT_OUT = {"ts_ns", "cores", "ready", "threads"}
# A block that is free twice goes to two, and the one that gives it back frees the other's.
PASSED = {"fcfs-preemption after with block-given-twice": {"kv_blocks"}}


@dataclass
class Changes:
    """What an engine held behind every change, by its `seq`."""

    held: dict[int, Snapshot] = field(default_factory=dict)
    others: dict[int, Changes] = field(default_factory=dict)
    _steps: Truth = field(default_factory=Truth)

    def __call__(self, snapshot: Snapshot) -> None:
        """Let go of what was held as a batch was formed."""

    def of_rank(self, rank: int) -> Changes:
        """What another rank of the run held."""
        return self.others.setdefault(rank, Changes())

    def changed(self, seq: int, snapshot: Snapshot) -> None:
        """Keep what was held behind a change."""
        self._steps(snapshot)
        self.held[seq] = snapshot


def differences(run: Run, folder: Path) -> list[str]:
    """Record a run, and compare the state behind each change of each rank that tells of them."""
    seen, out = Changes(), folder / "run.trace"
    options = replace(run.options, observer=seen)
    run_to_its_end(scenario(run.scenario), run.variant, out, options)
    trace, ranks = Trace.open(out), {0: seen, **seen.others}
    # A worker says what it holds at its steps alone; where task graphs are run nobody schedules.
    told = {rank: each for rank, each in ranks.items() if each.held}
    return [
        f"rank {rank}: {found}"
        for rank, each in told.items()
        for found in _of_rank(run, Session(trace, rank), each)
    ]


def _of_rank(run: Run, session: Session, seen: Changes) -> list[str]:
    seqs, apart = list(seen.held), excepted(run) | LEFT_OUT | PASSED.get(str(run), set())
    changes = session.moments.changes
    if seqs != changes.every().tolist():
        return [f"{len(seqs)} changes were told, {changes.num_places} are there"]
    ways = {
        "forward": seqs,
        "backward": seqs[::-1],
        "by jumps": sorted(seqs, key=lambda seq: seq * 7919 % 1009),
    }
    said = {way: _first(session, seen, each, way, apart) for way, each in ways.items()}
    return [f"{way}: {first}" for way, first in said.items() if first]


def _first(
    session: Session, seen: Changes, seqs: list[int], way: str, apart: Set[str]
) -> str | None:
    """The first change on a way behind which the state is not the engine's, and what of it."""
    for number, seq in enumerate(seqs):
        if number == 0 or way == "by jumps":
            session.goto(seq=seq)
        elif not (session.next("seq") if way == "forward" else session.back("seq")):
            return f"change {seq} is not there"
        if other := different(seen.held[seq], session.state.as_dict(), apart):
            return f"change {seq} {other}"
    return None


if __name__ == "__main__":
    sys.exit(compare_all(sys.argv[1:], differences))
