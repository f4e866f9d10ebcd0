"""What the session reads from a trace is what the engine held: forward, backward, by jumps.

The engine's own snapshots are kept while it records. They are the truth that the session's state is
compared with, at every step of every scenario and at every instant of the core groups.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.app.debug import Session
from stepscope.engine.scenarios import Options, scenario
from stepscope.ingest.trace import Trace
from tests.looped import looped
from tests.tiers import examples, sampled, slow

Snapshot = dict[str, Any]


@dataclass
class Truth:
    """The snapshots of a run in the order in which they were taken, sharing what did not change."""

    snapshots: list[Snapshot] = field(default_factory=list)
    others: dict[int, Truth] = field(default_factory=dict)

    def __call__(self, snapshot: Snapshot) -> None:
        if self.snapshots:
            _share(snapshot, self.snapshots[-1])
        self.snapshots.append(snapshot)

    def of_rank(self, rank: int) -> Truth:
        """What another rank of the run held."""
        return self.others.setdefault(rank, Truth())

    def of_steps(self) -> list[Snapshot]:
        """The first snapshot of each step: the one when its batch was formed."""
        by_step = groupby(self.snapshots, key=lambda snapshot: snapshot["step"])
        return [next(taken) for _, taken in by_step]


def _share(snapshot: Snapshot, before: Snapshot) -> None:
    for name, held in snapshot.items():
        if held == before[name]:
            snapshot[name] = before[name]
        elif isinstance(held, dict):
            _share(held, {**held, **before[name]})


@dataclass(frozen=True)
class Run:
    trace: Trace
    truth: Truth


# Small enough for a snapshot of every step; prompts that begin alike share blocks, of which there
# are too few, so that sharers come, go and are preempted.
MIXED = {
    "requests": "24", "prompt_len": "700", "max_tokens": "40", "budget": "256", "threshold": "224",
    "max_num_seqs": "32", "shared_prefix": "512", "prefix_cache": "true", "kv_blocks": "300",
}  # fmt: skip


RUNS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("fcfs-preemption", "before", {}),
    ("fcfs-preemption", "after", {}),
    ("mix-admission", "before", {"steps": "1"}),
    ("mix-admission", "after", {"steps": "1", "workload": "moe-layer"}),
    ("slot-recycling", "before", {}),
    ("slot-recycling", "after", {}),
    ("mixed-batches", "before", MIXED),
    ("mixed-batches", "after", MIXED),
    ("mixed-batches", "deferred", MIXED),
    ("mixed-batches", "mtp", MIXED),
    ("waiting-queue", "after", {"workload": "parked"}),
    ("waiting-queue", "after", {"loads": "lateral"}),
)
QUICK = (RUNS[0], RUNS[2], RUNS[5])
"""Queues and KV blocks, core groups, and slots; vLLM's are in test_told_by_steps."""


@pytest.fixture(
    scope="module",
    params=sampled(RUNS, QUICK),
    ids=lambda param: " ".join(param[:2]),
)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    name, variant, settings = request.param
    return recorded(name, variant, tmp_path_factory.mktemp("runs") / "run.trace", settings)


def recorded(name: str, variant: str, out: Path, settings: dict[str, str] | None = None) -> Run:
    truth = Truth()
    scenario(name).record(variant, out, Options(settings=settings or {}, observer=truth))
    return Run(Trace.open(out), truth)


@slow
def test_every_step_forward_is_what_the_engine_held(run: Run) -> None:
    session = Session(run.trace)

    for number, snapshot in enumerate(run.truth.of_steps()):
        assert number == 0 or session.next()
        assert session.state.as_dict() == snapshot
    assert not session.next()


@slow
def test_every_step_backward_is_what_the_engine_held(run: Run) -> None:
    session = Session(run.trace)
    steps = run.truth.of_steps()
    session.goto(step=steps[-1]["step"])

    for snapshot in reversed(steps):
        assert session.state.as_dict() == snapshot
        assert session.back() == (snapshot is not steps[0])


@slow
def test_every_step_by_a_jump_is_what_the_engine_held(run: Run) -> None:
    session = Session(run.trace)
    steps = run.truth.of_steps()

    for snapshot in sorted(steps, key=lambda snapshot: snapshot["step"] * 7919 % 1009):
        session.goto(step=snapshot["step"])
        assert session.state.as_dict() == snapshot


@slow
def test_instants_all_along_a_run_of_the_device_are_what_the_engine_held(run: Run) -> None:
    session = Session(run.trace)

    # All of them, of more runs: tests.app.debug.verifying.every_instant.
    for snapshot in run.truth.snapshots[::7]:
        session.goto(ts_ns=snapshot["ts_ns"])
        assert session.state.as_dict() == snapshot


@slow
def test_events_forward_and_backward_stop_wherever_the_engine_changed(run: Run) -> None:
    session = Session(run.trace)
    changes = _changes(run.truth.snapshots)[-500:]
    session.goto(ts_ns=changes[0]["ts_ns"])

    for snapshot in changes:
        _walk(session, "next", snapshot["ts_ns"])
        assert session.state.as_dict() == snapshot
    for snapshot in reversed(changes):
        _walk(session, "back", snapshot["ts_ns"])
        assert session.state.as_dict() == snapshot


def _changes(snapshots: list[Snapshot]) -> list[Snapshot]:
    """The last snapshot of each time at which something is not as it was before."""
    last_of_time = {snapshot["ts_ns"]: snapshot for snapshot in snapshots}
    kept: list[Snapshot] = []
    for snapshot in last_of_time.values():
        if not kept or {**snapshot, "ts_ns": 0} != {**kept[-1], "ts_ns": 0}:
            kept.append(snapshot)
    return kept


def _walk(session: Session, move: str, until_ns: int) -> None:
    moves = {"next": session.next, "back": session.back}
    while session.position.ts_ns != until_ns:
        assert moves[move]("event")


@pytest.fixture(scope="module")
def starving(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return recorded("fcfs-preemption", "before", tmp_path_factory.mktemp("runs") / "run.trace")


MOVES = st.one_of(
    st.tuples(st.sampled_from(["next", "back"]), st.sampled_from(["step", "event"])),
    st.tuples(st.just("step"), st.integers(1, 80)),
    st.tuples(st.just("time"), st.integers(-(10**9), 2 * 10**10)),
)


@slow
@settings(max_examples=examples(40))
@given(st.lists(MOVES, max_size=25))
def test_a_state_is_the_same_whichever_way_it_is_reached(
    starving: Run, moves: list[tuple[str, Any]]
) -> None:
    wanderer = Session(starving.trace)
    at_step = {snapshot["ts_ns"]: snapshot for snapshot in starving.truth.snapshots}

    for move, where in moves:
        match move:
            case "step":
                wanderer.goto(step=where)
            case "time":
                wanderer.goto(ts_ns=where)
            case _:
                {"next": wanderer.next, "back": wanderer.back}[move](where)

    newcomer = Session(starving.trace)
    newcomer.goto(ts_ns=wanderer.position.ts_ns)
    assert newcomer.position == wanderer.position
    assert newcomer.state == wanderer.state
    assert newcomer.detail() == wanderer.detail()
    if truth := at_step.get(wanderer.position.ts_ns):
        assert wanderer.state.as_dict() == truth


@looped(
    ("name", "variant", "settings"),
    [
        ("fcfs-preemption", "before", {"num_kv_blocks": "1", "requests": "2"}),
        ("mixed-batches", "before", {"kv_blocks": "1", "requests": "2"}),
    ],
)
def test_a_run_in_which_nobody_is_let_in_is_what_the_engine_held(
    name: str, variant: str, settings: dict[str, str], tmp_path: Path
) -> None:
    run = recorded(name, variant, tmp_path / "run.trace", settings)
    session = Session(run.trace)

    for snapshot in run.truth.of_steps():
        session.goto(step=snapshot["step"])
        assert session.state.as_dict() == snapshot
