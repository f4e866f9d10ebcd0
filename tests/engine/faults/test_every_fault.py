"""Every fault changes the trace that it is recorded in; without it, nothing does."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import polars.selectors as cs
import pytest

from stepscope.engine.executors.kinds import EXECUTORS, executor_kind
from stepscope.engine.faults import FAULTS, Fault, faults_of
from stepscope.engine.scenarios import SCENARIOS, Options, scenario
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.trace import Trace
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped
from tests.tiers import slow

# Enough for a fault to show itself, by scenario; and for those that need more, by name.
SMALL: dict[str, dict[str, str]] = {
    "mix-admission": {"steps": "1", "requests": "6"},
    "mixed-batches": {"requests": "24", "max_tokens": "32"},
}
SMALL_TOO = {"victim-in-batch": {"kv_blocks": "1030", "max_tokens": "64"}}
REAL_TIME = {kind.name for kind in EXECUTORS if kind.is_real_time}
NAMES = [of.name for of in SCENARIOS]
Tables = dict[str, pl.DataFrame]
Settings = frozenset[tuple[str, str]]
Run = tuple[str, str, Settings, str | None]


@cache
def plain(runs: RecordedOnce, run: Run) -> Tables:
    return recorded(runs, run)


def recorded(runs: RecordedOnce, run: Run, *faults: str) -> Tables:
    name, variant, settings, executor = run
    options = Options(settings=dict(settings), faults=frozenset(faults), executor=executor)
    try:
        path = runs.run(name, variant, options).path
    except ConfigError as error:
        return {"refused": pl.DataFrame({"why": [str(error)]})}
    assert path is not None
    return tables_of(path, executor)


def tables_of(path: Path, executor: str | None) -> Tables:
    trace = Trace.open(path)
    times = cs.ends_with("_ns") if executor in REAL_TIME else cs.by_name()
    return {table: trace.table(table).drop(times).collect() for table in BY_NAME}


def can_run(fault: Fault) -> bool:
    has_torch = find_spec("torch") is not None
    return has_torch or not (fault.executor and executor_kind(fault.executor).needs_torch)


def run_of(fault: Fault) -> Run:
    """The run that a fault is compared with."""
    return fault.scenario, fault.variant, settings_of(fault), fault.executor


def settings_of(fault: Fault) -> Settings:
    small = {} if fault.executor in REAL_TIME else SMALL.get(fault.scenario, {})
    settings = {**small, **fault.settings, **SMALL_TOO.get(fault.name, {})}
    return frozenset(settings.items())


def differing(one: Tables, other: Tables) -> list[str]:
    return [
        table
        for table in sorted({*one, *other})
        if table not in one or table not in other or not one[table].equals(other[table])
    ]


def without_effect(runs: RecordedOnce, faults: Iterable[Fault]) -> list[str]:
    """The faults that are refused, or with which the trace is that of the run without them."""
    found = []
    for fault in faults:
        faulty = recorded(runs, run_of(fault), fault.name)
        if "refused" in faulty or not differing(faulty, plain(runs, run_of(fault))):
            found.append(fault.name)
    return found


def not_the_same_again(runs: RecordedOnce, folder: Path, sound: Iterable[Run]) -> list[str]:
    found = []
    for number, run in enumerate(sound):
        name, variant, settings, executor = run
        out = folder / f"{number}.trace"
        try:
            options = Options(settings=dict(settings), executor=executor)
            scenario(name).record(variant, out, options)
        except ConfigError as error:
            again = {"refused": pl.DataFrame({"why": [str(error)]})}
        else:
            again = tables_of(out, executor)
        found += [f"{run}: {table}" for table in differing(again, plain(runs, run))]
    return found


@slow
@looped("name", NAMES)
def test_a_fault_changes_the_trace_of_the_variant_that_is_sound_without_it(
    recorded_once: RecordedOnce, name: str
) -> None:
    first = [fault for fault in faults_of(name) if not fault.executor][:1]

    assert without_effect(recorded_once, first) == []


@slow
@pytest.mark.parametrize("name", NAMES)
def test_every_fault_changes_the_trace_of_its_variant(
    name: str, recorded_once: RecordedOnce
) -> None:
    assert without_effect(recorded_once, filter(can_run, faults_of(name))) == []


@slow
@pytest.mark.parametrize("name", ["fcfs-preemption", "mix-admission"])
def test_without_a_fault_a_run_is_the_same_again_table_by_table(
    name: str, recorded_once: RecordedOnce, tmp_path: Path
) -> None:
    first = run_of(faults_of(name)[0])

    assert not_the_same_again(recorded_once, tmp_path, [first]) == []


@slow
@pytest.mark.parametrize("name", NAMES)
def test_every_run_that_a_fault_is_compared_with_is_the_same_again(
    name: str, recorded_once: RecordedOnce, tmp_path: Path
) -> None:
    sound = {run_of(fault) for fault in faults_of(name) if can_run(fault)}

    assert not_the_same_again(recorded_once, tmp_path, sound) == []


def test_a_fault_says_what_it_does_and_is_found_where_it_says() -> None:
    wrong = [
        fault.name
        for fault in FAULTS
        if fault.variant not in scenario(fault.scenario).variants
        or not fault.settings.keys() <= scenario(fault.scenario).settings.keys()
        or not fault.summary
        or fault.summary.endswith(".")
    ]

    assert wrong == []
