"""What cores hold at a moment, told from the rows of `core_spans` alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.engine.rows import Row

END, START, DISPATCH = 0, 1, 2
Cores = dict[int, dict[str, list[int] | None]]


def core_states(spans: list[Row], num_cores: int) -> Iterator[tuple[int, Cores]]:
    """Yield the time and the cores after each instant in which some row says that one changed.

    A block holds its core's running slot from dispatch to end, or the pending slot from dispatch to
    start and the running slot from then on. At one time: ends, then starts, then dispatches.
    """
    cores: Cores = {core: {"running": None, "pending": None} for core in range(num_cores)}
    changes = sorted((change for row in spans for change in _changes(row)), key=lambda c: c[:2])
    for index, (ts_ns, _, core, slots) in enumerate(changes):
        cores[core].update(slots)
        if index + 1 == len(changes) or changes[index + 1][0] > ts_ns:
            yield ts_ns, cores


def _changes(row: Row) -> Iterator[tuple[int, int, int, dict[str, Any]]]:
    core, block = row["core"], [row["task"], row["block"]]
    yield row["dispatch_ns"], DISPATCH, core, {row["slot"]: block}
    if row["slot"] == "pending":
        yield row["ts_ns"], START, core, {"pending": None, "running": block}
    yield row["end_ns"], END, core, {"running": None}
