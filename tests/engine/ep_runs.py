"""Runs of `ep-multiplexing` that tests look at, each made once, and what they look for in rows."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from stepscope.engine.runs.scenario import Metric
from stepscope.engine.scenarios.ep_multiplexing import EpMultiplexing
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.recorded_once import RecordedOnce
from tests.engine.rows import Row, Rows

SCENARIO = EpMultiplexing()
HAS_TORCH = find_spec("torch") is not None
SIMULATED, *TORCH = SCENARIO.executors
SHORT = {"max_tokens": "8"}
STAGGERED = {"max_tokens": "16", "stagger": "4"}


@cache
def served(variant: str, **settings: str) -> dict[str, Metric]:
    return SCENARIO.record(variant, None, asked({**SHORT, **settings})).metrics


@cache
def run(runs: RecordedOnce, variant: str, **settings: str) -> tuple[dict[str, Metric], Rows]:
    result = runs.run(SCENARIO.name, variant, asked({**SHORT, **settings}))
    assert result.path is not None
    return result.metrics, Rows.read(Trace.open(result.path))


def recorded(runs: RecordedOnce, variant: str, **settings: str) -> Rows:
    return run(runs, variant, **settings)[1]


def is_as_alone(rows: Rows, request: str) -> bool:
    told = rows.of("outputs", request=request)
    return all(row["digest"] == row["solo_digest"] for row in told)


def operations(rows: Rows, rank: int) -> list[tuple[object, ...]]:
    names = ("ordinal", "op", "dtype", "num_elements", "command", "slot")
    return [tuple(row[name] for name in names) for row in rows.of("collectives", rank=rank)]


def read_of_others(rows: Rows) -> list[Row]:
    """Reads of logits whose last write was for another row of the batch."""
    written: dict[tuple[str, int], int] = {}
    others = []
    for row in rows.of("accesses", rank=0):
        key = row["buffer"], row["first"]
        if row["op"] == "write":
            written[key] = row["segment"]
        elif row["op"] == "read" and written[key] != row["segment"]:
            others.append(row)
    return [row for row in others if "logits" in row["buffer"]]


def unordered(rows: Rows) -> list[Row]:
    """Reads on one stream of a write on another that nothing orders, by vector clocks."""
    clocks: dict[str, dict[str, int]] = {}
    events: dict[str, dict[str, int]] = {}
    written: dict[tuple[str, int], tuple[str, int]] = {}
    found = []
    for row in rows.of("accesses", rank=0):
        mine = clocks.setdefault(row["stream"], {})
        mine[row["stream"]] = mine.get(row["stream"], 0) + 1
        key = row["buffer"], row["first"]
        if row["op"] == "record":
            events[row["event"]] = dict(mine)
        elif row["op"] == "wait":
            for stream, count in events[row["event"]].items():
                mine[stream] = max(mine.get(stream, 0), count)
        elif row["op"] == "write":
            written[key] = row["stream"], mine[row["stream"]]
        elif mine.get(written[key][0], 0) < written[key][1]:
            found.append(row)
    return found


def overlapping_scratch(rows: Rows) -> list[Row]:
    """Reads of a row of scratch that another sequence wrote last."""
    written: dict[int, int] = {}
    overlapping = []
    for row in rows.of("accesses", buffer="moe-scratch", rank=0):
        if row["op"] == "write":
            written[row["first"]] = row["segment"]
        elif written[row["first"]] != row["segment"]:
            overlapping.append(row)
    return overlapping
