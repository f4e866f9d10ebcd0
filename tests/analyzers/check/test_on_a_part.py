"""Rules that judge a part of a run find nothing in it that the whole run has not."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace

import polars as pl
import pytest

from stepscope.analyzers.check.on_a_part import OF_A_PART, rules_of_a_part
from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.check.run import check
from stepscope.engine.scenarios import SCENARIOS, scenario
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped
from tests.tiers import slow

LIVE = {"0": {"rows": {}, "live": True, "discarded_bytes": 0, "notes": []}}
ENDLESS = 1 << 62


def part_of(trace: Trace, first_ns: int, last_ns: int) -> Trace:
    """The rows from one time to another, as somebody has them who follows the recording."""
    inside = (pl.col("ts_ns") >= first_ns) & (pl.col("ts_ns") < last_ns)
    rows = {table.name: trace.table(table.name).filter(inside) for table in TABLES}
    manifest = replace(
        trace.manifest, closed=False, recovered=LIVE,
        tables=dict.fromkeys(trace.manifest.tables, "partial"),
    )  # fmt: skip
    return Trace(rows, manifest, trace.name)


def parts_of(trace: Trace) -> Iterator[Trace]:
    """Two parts that begin at a time which follows from the run's name: one up to the end."""
    rows = [trace.table(table.name).select("ts_ns") for table in TABLES]
    times = pl.concat(rows).drop_nulls().unique().collect()["ts_ns"].sort().to_list()
    dice = random.Random(f"{trace.manifest.scenario} {trace.manifest.variant}")
    first, last = sorted(dice.sample(times, 2))
    yield part_of(trace, first, ENDLESS)
    yield part_of(trace, first, last)


@slow
@looped("name", ["fcfs-preemption", "mix-admission"])
def test_what_is_found_in_a_part_of_a_run_is_in_the_whole(
    name: str, recorded_once: RecordedOnce
) -> None:
    check_parts(recorded_once, name, ["after"])


@slow
@pytest.mark.parametrize("name", [each.name for each in SCENARIOS])
def test_what_is_found_in_a_part_of_any_variant_is_in_the_whole(
    name: str, recorded_once: RecordedOnce
) -> None:
    check_parts(recorded_once, name, scenario(name).variants)


def check_parts(recorded_once: RecordedOnce, name: str, variants: Iterable[str]) -> None:
    rules = rules_of_a_part(RULES)
    for variant in variants:
        trace = recorded_once.trace(name, variant).in_memory()
        whole = {each.code for each in check(trace, rules).findings}

        for part in parts_of(trace):
            found = {each.code for each in check(part, rules).findings}

            assert found <= whole, f"{variant}: {found - whole}"


def test_each_rule_of_a_part_is_a_rule() -> None:
    assert {each.code for each in RULES} >= OF_A_PART


def test_a_rule_that_takes_what_is_left_out_for_what_never_was_is_none() -> None:
    """KVB004 finds preemptions that repeat in parts of a run that is silent as a whole."""
    assert "KVB004" not in OF_A_PART
