"""Runs of slot-recycling, and what is asked of their accesses."""

from __future__ import annotations

from functools import cache

from stepscope.engine.runs.scenario import Metric
from stepscope.engine.scenarios.slot_recycling import SlotRecycling
from stepscope.engine.workloads.workload import Workload
from tests.engine.asked import asked
from tests.engine.recorded_once import RecordedOnce
from tests.engine.rows import Row, Rows

SCENARIO = SlotRecycling()


LARGE = {"slots": "4", "requests": "8", "max_cap": "48"}


COUNTS = ("steps", "admits", "midstream", "refreshes", "masked_rows", "tokens")


MIB = 1 << 20


def counts(variant: str, **settings: str) -> tuple[Metric, ...]:
    metrics = SCENARIO.record(variant, None, asked(settings)).metrics
    return tuple(metrics[name] for name in COUNTS)


@cache
def recorded(runs: RecordedOnce, variant: str, **settings: str) -> Rows:
    return Rows.read(runs.trace(SCENARIO.name, variant, asked(settings)))


def ending_at_once() -> Workload:
    return Workload.from_dict(
        {
            "requests": [
                {"id": "x", "arrival_ns": 0, "prompt_len": 8, "max_tokens": 9, "eos_after": 1},
                {"id": "y", "arrival_ns": 0, "prompt_len": 8, "max_tokens": 3},
            ]
        }
    )


def without_times(rows: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "ts_ns"} for row in rows]


def went_back(rows: Rows) -> list[Row]:
    """Writes to a slot of the device of an older epoch than it had."""
    newest: dict[int, int] = {}
    gone_back = []
    for row in rows.of("accesses", op="write", buffer="device-kv"):
        slot = row["first"] // (4 * MIB)
        if row["epoch"] < newest.get(slot, 0):
            gone_back.append(row)
        newest[slot] = row["epoch"]
    return gone_back


def read_of_others(rows: Rows) -> list[Row]:
    """Reads of an epoch from before the first write for the slot's owner."""
    claims = {(row["step"], row["id"]) for row in rows.of("allocations", op="claim")}
    owned_since: dict[int, int] = {}
    newest, dirty = 0, []
    for row in rows.of("accesses"):
        slot = row["first"] // (4 * MIB)
        if row["epoch"] > newest:
            newest = row["epoch"]
            if (row["step"], slot) in claims:
                claims.remove((row["step"], slot))
                owned_since[slot] = newest
        elif row["op"] == "read" and row["epoch"] < owned_since.get(slot, 0):
            dirty.append(row)
    return dirty
