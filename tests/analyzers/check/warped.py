"""The same rows on another time axis: their order stays, and no duration does."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Tables = Mapping[str, Sequence[Mapping[str, Any]]]
WARPS: tuple[Callable[[int], int], ...] = (
    lambda place: 1_000 * place,
    lambda place: 61_000_000_000 * place,
    lambda place: 1_000 * place + 61_000_000_000 * (place * place // 3),
)
"""When the row of a place in the order is: close together, far apart, and unevenly."""


def warped(tables: Tables, warp: Callable[[int], int]) -> dict[str, list[dict[str, Any]]]:
    """Rows of which each time is `warp` of its place among all times; a duration ends at one too.

    Columns that end in `_ns` are times; `dur_ns` is a duration from `ts_ns` on.
    """
    filled = {
        name: [{"ts_ns": place, **row} for place, row in enumerate(rows)]
        for name, rows in tables.items()
    }
    times = sorted({at for rows in filled.values() for row in rows for at in _times(row)})

    def moved(at: int) -> int:
        return warp(bisect_left(times, at) + 1)

    return {name: [_moved(row, moved) for row in rows] for name, rows in filled.items()}


def _times(row: Mapping[str, Any]) -> list[int]:
    found = [at for name, at in row.items() if _is_time(name) and at is not None]
    if row.get("dur_ns") is not None:
        found.append(row["ts_ns"] + row["dur_ns"])
    return found


def _moved(row: Mapping[str, Any], moved: Callable[[int], int]) -> dict[str, Any]:
    new = {name: moved(at) if _is_time(name) and at is not None else at for name, at in row.items()}
    if row.get("dur_ns") is not None:
        new["dur_ns"] = moved(row["ts_ns"] + row["dur_ns"]) - new["ts_ns"]
    return new


def _is_time(name: str) -> bool:
    return name.endswith("_ns") and name != "dur_ns"
