"""The rings and scopes of a swimlane folder's orchestration, out of `scope_stats.jsonl`.

Its lines carry no time, but the number of tasks that their ring had been given: the time is that of
the submission before, and never earlier than that of the scope before. Where nothing says when
tasks were submitted, scopes are `SCOPE_NS` apart.
"""

from __future__ import annotations

import json
from typing import Any, TypeGuard

import polars as pl

from stepscope.ingest.readers.swimlane.decode import Json, Tally

RINGS = (("task_window", "tasks"), ("heap", "bytes"), ("dep_pool", "entries"))
SCOPE_NS = 1_000


def rings(scopes: list[Json], submits: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """How full each ring was at the scopes of the orchestration."""
    times = _scope_times(scopes, submits)
    rows: list[tuple[Any, ...]] = []
    for scope, now_ns in zip(scopes, times, strict=True):
        ring = f"ring {scope['ring']}"
        for what, unit in RINGS:
            first, last = scope.get(f"{what}_start"), scope.get(f"{what}_end")
            if _is_count(first) and _is_count(last):
                rows.append((now_ns, ring, what, unit, float(last - first)))
        if _is_count(held := scope.get("tensormap")):
            rows.append((now_ns, "tensor map", "tensormap", "entries", float(held)))
    if rows:
        source = "the tasks submitted" if len(submits) else "the position of the line"
        tally.inferred[f"times of ring statistics from {source}"] += len(scopes)
    schema = {"ts_ns": pl.Int64, "track": pl.String, "name": pl.String, "unit": pl.String,
              "value": pl.Float64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _scope_times(scopes: list[Json], submits: pl.DataFrame) -> list[int]:
    if submits.is_empty():
        return [number * SCOPE_NS for number in range(len(scopes))]
    ends: dict[int, list[int]] = {}
    for task, end in submits.select("task", "end").iter_rows():
        ends.setdefault(task >> 32, []).append(end)
    times = []
    now_ns = first_ns(submits)
    for scope in scopes:
        submitted = ends.get(scope["ring"], [])
        given = min(scope["task_window_end"], len(submitted))
        now_ns = max(now_ns, submitted[given - 1] if given else now_ns)
        times.append(now_ns)
    return times


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and abs(value) < 1 << 62


def scope_slices(scopes: list[Json], submits: pl.DataFrame) -> pl.DataFrame:
    """Scopes of the orchestration from `begin` to `end`, where both are there, by their source."""
    opened: list[tuple[int, Json]] = []
    made = []
    for scope, now_ns in zip(scopes, _scope_times(scopes, submits), strict=True):
        if scope.get("phase") == "begin":
            opened.append((now_ns, scope))
        elif scope.get("phase") == "end" and opened:
            began_ns, first = opened.pop()
            told = {name: first.get(name) for name in ("ring", "depth")}
            made.append((began_ns, len(opened), now_ns - began_ns, str(first.get("site")),
                         json.dumps(told)))  # fmt: skip
    schema = {"ts_ns": pl.Int64, "depth": pl.Int64, "dur_ns": pl.Int64, "name": pl.String,
              "args": pl.String}  # fmt: skip
    frame = pl.DataFrame(made, schema=schema, orient="row").sort("ts_ns", "depth")
    return frame.drop("depth").with_columns(
        track=pl.lit("AICPU / scopes"), category=pl.lit("scope"), form=pl.lit("slice")
    )


def first_ns(*frames: pl.DataFrame) -> int:
    """The earliest `start` of any frame, 0 when there is none."""
    starts: list[int] = pl.concat([frame.select("start") for frame in frames])["start"].to_list()
    return min(starts, default=0)
