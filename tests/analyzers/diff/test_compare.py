"""Two runs part where the engine's own snapshots and rows, followed one by one, say so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from stepscope.analyzers.diff.compare import Difference, diff
from stepscope.engine.scenarios import SCENARIOS, scenario
from stepscope.engine.workloads.workload import RequestSpec
from stepscope.ingest.trace import Trace
from tests.analyzers.absurd import Rows as Absurd
from tests.analyzers.absurd import absurd_rows, trace_from
from tests.analyzers.serving_rows import decode, row
from tests.engine.asked import asked
from tests.engine.drawn_requests import requests
from tests.engine.rows import Row, Rows
from tests.engine.small_engines import serve
from tests.looped import looped
from tests.tiers import examples, sampled, slow
from tests.traces import trace_of

Snapshot = dict[str, Any]
NAMES = [each.name for each in SCENARIOS]
Recorded = tuple[Trace, list[Snapshot]]
Record = Callable[..., Recorded]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """Records a variant once: its trace, and what the engine showed whenever anything changed."""
    seen: dict[tuple[str, str, int], Recorded] = {}

    def record(name: str, variant: str, seed: int = 0) -> Recorded:
        if (name, variant, seed) not in seen:
            snapshots: list[Snapshot] = []
            out: Path = tmp_path_factory.mktemp(name) / f"{variant}.trace"
            options = asked(SMALL.get(name), seed=seed, observer=snapshots.append)
            scenario(name).record(variant, out, options)
            seen[name, variant, seed] = Trace.open(out), snapshots
        return seen[name, variant, seed]

    return record


SMALL = {
    "mix-admission": {"steps": "1", "requests": "4", "groups": "4"},
    "mixed-batches": {"requests": "12"},  # each snapshot names the owner of every KV block
}
FOLLOWED = {
    "accesses": ("op", "buffer", "first", "last"),
    "collectives": ("op", "command", "slot", "num_elements"),
    "segments": ("phase", "num_rows", "num_tokens"),
    "decisions": ("subject", "verdict", "resource"),
    "steps": ("executed_path",),
}


def first_difference(a: Recorded, b: Recorded) -> int:
    """The first step in which a snapshot or a row differs, found one by one."""
    firsts = [_first_snapshot(a[1], b[1])]
    rows = Rows.read(a[0]), Rows.read(b[0])
    for table, columns in FOLLOWED.items():
        ours, theirs = (_by_step(each.tables[table], columns) for each in rows)
        firsts += [step for step in {*ours, *theirs} if ours[step] != theirs[step]]
    return min(first for first in firsts if first is not None)


def _first_snapshot(ours: list[Snapshot], theirs: list[Snapshot]) -> int | None:
    for a, b in zip(ours, theirs, strict=False):
        if _untimed(a) != _untimed(b):
            return int(a["step"])
    return None


def _untimed(snapshot: Snapshot) -> Snapshot:
    return {name: held for name, held in snapshot.items() if name != "ts_ns"}


def _by_step(rows: list[Row], columns: tuple[str, ...]) -> dict[int, list[Any]]:
    """Rows by step; decisions on the same subject in any order."""
    steps: dict[int, list[Any]] = defaultdict(list)
    for each in rows:
        steps[each["step"]].append(tuple(str(each[name]) for name in columns))
    return defaultdict(list, {step: sorted(told) for step, told in steps.items()})


@slow
@pytest.mark.parametrize("name", sampled(NAMES, ["mix-admission", "fcfs-preemption"]))
def test_before_and_after_part_where_everything_that_happened_first_differs(
    recorded: Record, name: str
) -> None:
    before, after = recorded(name, "before"), recorded(name, "after")

    found = diff(before[0], after[0])

    assert found.verdict == "diverged"
    assert found.divergence is not None
    assert found.divergence.step == first_difference(before, after)
    assert any(given.what == "variant" for given in found.inputs)


@slow
def test_fcfs_preemption_parts_at_the_order_of_a_batch(recorded: Record) -> None:
    before, after = (recorded("fcfs-preemption", each) for each in ("before", "after"))
    pairs = zip(before[1], after[1], strict=False)
    a, b = next(pair for pair in pairs if pair[0]["batch"] != pair[1]["batch"])

    divergence = _divergence(diff(before[0], after[0]))

    assert (divergence["step"], divergence["stage"]) == (a["step"], "batch")
    assert divergence["row_a"]["request"] == a["batch"][divergence["place"]][0]
    assert divergence["row_b"]["request"] == b["batch"][divergence["place"]][0]


@slow
def test_mix_admission_parts_at_the_first_block_that_is_placed_elsewhere(recorded: Record) -> None:
    before, after = (recorded("mix-admission", each) for each in ("before", "after"))
    pairs = zip(before[1], after[1], strict=False)
    a, b = next(pair for pair in pairs if pair[0]["cores"] != pair[1]["cores"])

    divergence = _divergence(diff(before[0], after[0]))

    assert (divergence["step"], divergence["stage"]) == (a["step"], "placement")
    placed = min(divergence[f"row_{run}"]["dispatch_ns"] for run in "ab")
    assert placed == min(a["ts_ns"], b["ts_ns"])


@slow
def test_slot_recycling_parts_at_an_access_and_never_in_what_it_decides(recorded: Record) -> None:
    before, after = (recorded("slot-recycling", each) for each in ("before", "after"))
    told = [Rows.read(run[0]).tables["accesses"] for run in (before, after)]
    same = (_access(a) == _access(b) for a, b in zip(*told, strict=False))
    first = next(at for at, is_same in enumerate(same) if not is_same)

    found = diff(before[0], after[0])

    divergence = _divergence(found)
    assert divergence["stage"] == "accesses"
    assert (divergence["row_a"], divergence["row_b"]) == (told[0][first], told[1][first])
    assert {found.firsts[name] for name in ("batch", "moves", "decisions", "outputs")} == {None}


def test_what_differs_before_the_first_step_is_an_input_and_no_divergence() -> None:
    decode = {"request": "r", "phase": "decode", "num_tokens": 1}
    slot = {"step": 0, "resource": "slot", "op": "claim", "owner": "r"}
    ours, theirs = (
        trace_of(
            batch_rows=[{**decode, "step": step} for step in (1, 2)],
            allocations=[{**slot, "step": 2, "id": at}, *_numbered(slot, slots)],
        )
        for slots, at in ((1, 7), (3, 8))
    )

    found = diff(ours, theirs)

    assert [each.what for each in found.inputs] == ["allocations before the first step, rank 0"]
    assert found.firsts["allocations"] == (0, 2)
    assert (_divergence(found)["stage"], _divergence(found)["step"]) == ("allocations", 2)


@slow
def test_who_gained_is_told_by_what_the_engine_says_became_of_them(recorded: Record) -> None:
    before, after = (recorded("fcfs-preemption", each)[0] for each in ("before", "after"))

    found = diff(before, after)

    assert found.outcomes.totals["finished"] == (0, 40)
    assert found.outcomes.totals["preemptions"] == (230, 10)
    gained = found.outcomes.requests.filter(pl.col("change") == "gained")
    assert gained.filter(pl.col("outcome_a") == "abort").height == 40
    assert dict(found.outcomes.causes)["recompute"][0] > found.outcomes.causes["recompute"][1] > 0


@slow
def test_a_run_equals_itself(recorded: Record) -> None:
    trace, _ = recorded("fcfs-preemption", "before")

    found = diff(trace, trace)

    assert (found.verdict, found.divergence, found.inputs) == ("equal", None, ())


@slow
def test_another_seed_is_told_as_an_input(recorded: Record) -> None:
    ours, theirs = (recorded("fcfs-preemption", "after", seed=seed)[0] for seed in (0, 1))

    given = [each.what for each in diff(ours, theirs).inputs]

    assert "seed" in given
    assert any(what.startswith("request req-") for what in given)


@slow
@looped(("swapped", "shorter"), [(False, "A"), (True, "B")])
def test_a_run_that_ends_before_is_a_prefix(recorded: Record, swapped: bool, shorter: str) -> None:
    whole, _ = recorded("fcfs-preemption", "before")
    pair = (_until(whole, 50), whole)

    found = diff(*(reversed(pair) if swapped else pair))

    assert (found.verdict, found.shorter) == ("prefix", shorter)


def test_the_torn_last_step_of_an_unclosed_recording_is_no_divergence(recorded: Record) -> None:
    whole, _ = recorded("fcfs-preemption", "before")
    torn = _until(whole, 50)
    tables = {name: torn.table(name).collect() for name in ("steps", "batch_rows", "lifecycle")}
    rows = tables["batch_rows"]
    tables["batch_rows"] = rows.filter((pl.col("step") < 50) | (pl.col("row") == 0))
    unclosed = Trace.from_tables(tables, replace(whole.manifest, closed=False, tables={}))

    assert diff(unclosed, whole).verdict == "prefix"


@looped("swapped", [False, True])
def test_which_of_two_ends_first_is_the_same_whichever_is_named_first(swapped: bool) -> None:
    """Each ends before the other on one of two ranks, and rank 0 is where they differ first."""
    pair = [_of_lengths(3, 5), _of_lengths(5, 3)]

    found = diff(*(reversed(pair) if swapped else pair))

    assert (found.verdict, found.shorter) == ("prefix", "B" if swapped else "A")


def _of_lengths(*lengths: int) -> Trace:
    steps = [
        decode(number, 1, rank=rank)
        for rank, length in enumerate(lengths)
        for number in range(length)
    ]
    return trace_of(steps=steps)


@slow
def test_runs_that_differ_in_what_is_torn_of_both_are_equal() -> None:
    ours, theirs = (
        trace_of(batch_rows=[row(1, "a"), row(2, "a"), row(3, last)], closed=False)
        for last in ("a", "b")
    )

    assert [diff(*pair).verdict for pair in ((ours, theirs), (theirs, ours))] == ["equal"] * 2


@slow
@given(requests, st.data())
@settings(max_examples=examples(20))
def test_one_changed_row_is_found_where_it_is(
    specs: list[RequestSpec], data: st.DataObject
) -> None:
    _, rows = serve(specs)
    changed = [dict(row) for row in rows.tables["batch_rows"]]
    assume(changed)
    at = data.draw(st.integers(0, len(changed) - 1))
    changed[at]["num_tokens"] += 1
    ours: dict[str, Any] = rows.tables
    theirs = {**ours, "batch_rows": changed}

    divergence = _divergence(diff(trace_of(**ours), trace_of(**theirs)))

    assert (divergence["step"], divergence["stage"]) == (changed[at]["step"], "batch")
    assert divergence["row_b"]["num_tokens"] == divergence["row_a"]["num_tokens"] + 1


@given(absurd_rows, absurd_rows)
@settings(max_examples=examples(15))
def test_any_two_traces_can_be_compared(ours: Absurd, theirs: Absurd) -> None:
    a, b = trace_from(ours), trace_from(theirs)

    assert diff(a, b).verdict in {"equal", "prefix", "diverged", "incomparable"}
    assert diff(a, a).verdict in {"equal", "incomparable"}


def _divergence(found: Difference) -> dict[str, Any]:
    assert found.divergence is not None
    return {name: getattr(found.divergence, name) for name in found.divergence.__slots__}


def _access(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("step", "op", "buffer", "first", "last"))


def _tables(trace: Trace) -> Iterator[str]:
    return (name for name in ("steps", "batch_rows", "lifecycle", "decisions", "allocations",
            "outputs") if trace.has(name))  # fmt: skip


def _until(trace: Trace, step: int) -> Trace:
    """The trace as it was at the end of a step."""
    tables = {
        name: trace.table(name).filter(pl.col("step") <= step).collect() for name in _tables(trace)
    }
    return Trace.from_tables(tables, trace.manifest)


def _numbered(row: Row, number: int) -> list[Row]:
    return [{**row, "id": at} for at in range(number)]


def test_a_recording_that_tells_whom_it_lets_in_decides_no_otherwise_than_one_that_does_not() -> (
    None
):
    moved = {"step": 1, "ts_ns": 10, "request": "a", "event": "admit"}
    let_in = {"subject_kind": "request", "subject": "a", "verdict": "admitted"}
    tables: dict[str, Any] = {"steps": [decode(1, 1)], "lifecycle": [moved]}
    silent = trace_of(**tables)
    told = trace_of(**tables, decisions=[{"step": 1, "ts_ns": 10, **let_in}])

    assert diff(silent, told).verdict == "equal"
