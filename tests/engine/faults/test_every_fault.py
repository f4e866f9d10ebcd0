"""Every fault changes the trace that it is recorded in; without it, nothing does."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import polars as pl
import polars.selectors as cs
import pytest

from stepscope.engine.executors.kinds import EXECUTORS, executor_kind
from stepscope.engine.faults import FAULTS, Fault
from stepscope.engine.scenarios import Options, scenario
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.trace import Trace

# Enough for a fault to show itself, by scenario; and for those that need more, by name.
SMALL: dict[str, dict[str, str]] = {
    "mix-admission": {"steps": "1", "requests": "6"},
    "mixed-batches": {"requests": "24", "max_tokens": "32"},
}
SMALL_TOO = {"victim-in-batch": {"kv_blocks": "1030", "max_tokens": "64"}}
REAL_TIME = {kind.name for kind in EXECUTORS if kind.is_real_time}
Tables = dict[str, pl.DataFrame]
Settings = frozenset[tuple[str, str]]
by_name = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@cache
def plain(
    folder: Path, name: str, variant: str, settings: Settings, executor: str | None
) -> Tables:
    out = folder / f"plain-{len(list(folder.iterdir()))}.trace"
    return recorded(out, name, variant, settings, executor)


def recorded(
    out: Path,
    name: str,
    variant: str,
    settings: Settings,
    executor: str | None,
    faults: frozenset[str] = frozenset(),
) -> Tables:
    if executor and executor_kind(executor).needs_torch:
        pytest.importorskip("torch", reason="the fault is one of the torch executor")
    options = Options(settings=dict(settings), faults=faults, executor=executor)
    try:
        scenario(name).record(variant, out, options)
    except ConfigError as error:
        return {"refused": pl.DataFrame({"why": [str(error)]})}
    trace = Trace.open(out)
    times = cs.ends_with("_ns") if executor in REAL_TIME else cs.by_name()
    return {table: trace.table(table).drop(times).collect() for table in BY_NAME}


def settings_of(fault: Fault) -> Settings:
    small = {} if fault.executor in REAL_TIME else SMALL.get(fault.scenario, {})
    settings = {**small, **fault.settings, **SMALL_TOO.get(fault.name, {})}
    return frozenset(settings.items())


def key(run: tuple[str, str, Settings, str | None]) -> tuple[str, ...]:
    name, variant, settings, executor = run
    return name, variant, str(sorted(settings)), str(executor)


# Every run that a fault is compared with, in an order that each process of a test run agrees on.
SOUND = sorted(
    {(each.scenario, each.variant, settings_of(each), each.executor) for each in FAULTS}, key=key
)


def differing(one: Tables, other: Tables) -> list[str]:
    return [
        table
        for table in sorted({*one, *other})
        if table not in one or table not in other or not one[table].equals(other[table])
    ]


@by_name
def test_a_fault_changes_the_trace_of_the_variant_that_is_sound_without_it(
    fault: Fault, folder: Path
) -> None:
    settings = settings_of(fault)
    faulty = recorded(
        folder / f"{fault.name}.trace", fault.scenario, fault.variant, settings,
        fault.executor, frozenset({fault.name}),
    )  # fmt: skip

    sound = plain(folder, fault.scenario, fault.variant, settings, fault.executor)
    assert "refused" not in faulty
    assert differing(faulty, sound)


@pytest.mark.parametrize(
    ("name", "variant", "settings", "executor"),
    SOUND,
    ids=[f"{n}-{v}-{i}" for i, (n, v, *_) in enumerate(SOUND)],
)
def test_without_a_fault_a_run_is_the_same_again_table_by_table(
    name: str, variant: str, settings: Settings, executor: str | None, folder: Path
) -> None:
    out = folder / f"again-{len(list(folder.iterdir()))}.trace"
    again = recorded(out, name, variant, settings, executor)

    assert differing(again, plain(folder, name, variant, settings, executor)) == []


@by_name
def test_a_fault_says_what_it_does_and_is_found_where_it_says(fault: Fault) -> None:
    assert fault.variant in scenario(fault.scenario).variants
    assert fault.settings.keys() <= scenario(fault.scenario).settings.keys()
    assert fault.summary
    assert not fault.summary.endswith(".")
