"""The records of a swimlane folder as frames: rows that make sense, counted; those that don't, too.

Times are still cycles of the device's counter. The task's number is 64 bits, `ring << 32 | local`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from stepscope.ingest.limits import DEFAULTS, Limits

Json = dict[str, Any]
_COLUMNS = ("kind", "start_cycles", "end_cycles", "task_id")
LAST_NUMBER = 2**63 - 1
AIC, AIV0, AIV1 = 1, 2, 4
UNKNOWN_HZ = 1_000_000_000
NO_ROOM = "(no table has a column for them)"
FAR_S = 4_000_000_000  # in nanoseconds it still fits 64 bits

SPANS = {"core": pl.Int32, "task": pl.Int64, "register": pl.Int64, "start": pl.Int64,
         "end": pl.Int64}  # fmt: skip
DISPATCHES = {"core": pl.Int32, "register": pl.Int64, "dispatch": pl.Int64, "finish": pl.Int64}
PHASES = {"thread": pl.Int32, "kind": pl.String, "task": pl.Int64, "start": pl.Int64,
          "end": pl.Int64, "queues": pl.List(pl.Int64), "args": pl.String}  # fmt: skip
SUBMITS = {"thread": pl.Int32, "task": pl.Int64, "start": pl.Int64, "end": pl.Int64,
           "args": pl.String}  # fmt: skip
TASKS = {"task": pl.Int64, "mask": pl.Int32, "num_blocks": pl.Int32, "kernels": pl.List(pl.Int64)}
EDGES = {"from_task": pl.Int64, "to_task": pl.Int64, "source": pl.String}
CORES = {"core": pl.Int32, "core_kind": pl.String, "group": pl.Int32, "thread": pl.Int32}


@dataclass(slots=True)
class Tally:
    """What was read and skipped, by kind, within which limits; sentences for the report."""

    limits: Limits = DEFAULTS
    read: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    inferred: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    is_cut: bool = False

    def count(self, what: str, num_kept: int, num_found: int, why: str) -> None:
        """Count rows of a kind that were kept, and those skipped because of `why`."""
        if num_kept:
            self.read[what] += num_kept
        if num_found > num_kept:
            self.skipped[f"{what} {why}"] += num_found - num_kept


def core_spans(records: Json, tally: Tally) -> pl.DataFrame:
    """What each core ran, with the dispatch that the scheduler noted for it.

    The two are joined on core and register, which counts up; when it comes round, in order.
    """
    found = _list(records, "aicore_tasks")
    rows = [row[:5] for row in found if _are_numbers(row, 5) and row[3] <= row[4]]
    tally.count("core tasks", len(rows), len(found), "that are not five numbers in order")
    tally.count("cycles from receipt to start", 0, sum(_are_numbers(r, 6) for r in found), NO_ROOM)
    told = _list(records, "aicpu_tasks")
    kept = [row[:4] for row in told if _are_numbers(row, 4)]
    tally.count("dispatches", len(kept), len(told), "that are not four numbers")
    spans = _frame(rows, SPANS).sort("core", "register", "start")
    dispatches = _frame(kept, DISPATCHES).sort("core", "register", "dispatch")
    joined = _numbered(spans).join(
        _numbered(dispatches), on=["core", "register", "round"], how="left", maintain_order="left"
    )
    num_lost = len(dispatches) - int(joined["dispatch"].count())
    if num_lost:
        tally.skipped["dispatches of which the core recorded nothing"] += num_lost
    return joined.drop("register", "round")


def _numbered(frame: pl.DataFrame) -> pl.DataFrame:
    place = ("core", "register")
    return frame.with_columns(round=pl.int_range(pl.len()).over(place))


def phases(records: Json, tally: Tally) -> pl.DataFrame:
    """What scheduler threads did when; `task` where it was about one, and the ready queues."""
    rows = []
    found = list(_by_thread(records, "aicpu_scheduler_phases"))
    for thread, phase in found:
        times = _times(phase)
        kind = phase.get("kind") if isinstance(phase, dict) else None
        if times and isinstance(kind, str):
            queues = phase.get("shared_at_start")
            lengths = queues[:3] if isinstance(queues, list) and _are_numbers(queues, 3) else None
            task = number(phase.get("task_id"))
            rows.append((thread, kind, task, *times, lengths, _args(phase, task)))
    tally.count("scheduler phases", len(rows), len(found), "without a kind or times in order")
    return _frame(rows, PHASES)


def submits(records: Json, tally: Tally) -> pl.DataFrame:
    """When the orchestrator submitted which task, in the order in which it did."""
    found = list(_by_thread(records, "aicpu_orchestrator_phases"))
    rows = []
    for thread, phase in found:
        times = _times(phase)
        task = number(phase.get("task_id")) if isinstance(phase, dict) else None
        if times and task is not None:
            rows.append((thread, task, *times, _args(phase, task)))
    tally.count("submissions", len(rows), len(found), "without a task or times in order")
    return _frame(rows, SUBMITS).sort("start", "end", maintain_order=True)


def tasks(deps: Json, tally: Tally) -> pl.DataFrame:
    """Tasks with their core mask: which of AIC, AIV0 and AIV1 a kernel is given for."""
    found = _list(deps, "tasks")
    rows = []
    for task in found:
        row = _task(task) if isinstance(task, dict) else None
        rows += [row] if row else []
    tally.count("tasks", len(rows), len(found), "without a number, three kernels and blocks")
    num_args = sum(len(_list(task, "args")) for task in found if isinstance(task, dict))
    tally.count(
        "tensors and arguments of tasks", 0, num_args + len(_list(deps, "tensors")), NO_ROOM
    )
    return _frame(rows, TASKS).unique("task", keep="first", maintain_order=True)


def _task(task: Json) -> tuple[int, int, int, list[int]] | None:
    kernels, num_blocks = task.get("kernel_ids"), number(task.get("block_num"))
    identity = number(task.get("task_id"))
    if identity is None or num_blocks is None or num_blocks >= 1 << 31:
        return None
    if not isinstance(kernels, list) or len(kernels) != 3:
        return None
    given = [number(kernel) for kernel in kernels]
    bits = zip((AIC, AIV0, AIV1), given, strict=True)
    mask = sum(bit for bit, kernel in bits if kernel is not None)
    return identity, mask, num_blocks, [kernel for kernel in given if kernel is not None]


def edges(deps: Json, tally: Tally) -> pl.DataFrame:
    """Dependencies that order two tasks; an edge that only keeps memory alive is no such."""
    found = [edge for edge in _list(deps, "edges") if isinstance(edge, dict)]
    waits = [edge for edge in found if "wait" in _list(edge, "flags") or "flags" not in edge]
    rows = []
    for edge in waits:
        ends = number(edge.get("pred")), number(edge.get("succ"))
        if None not in ends:
            source = edge.get("source")
            rows.append((*ends, source if isinstance(source, str) else None))
    tally.count("dependencies", len(rows), len(waits), "without two tasks")
    tally.count("dependencies", 0, len(found) - len(waits), "that only keep memory alive")
    return _frame(rows, EDGES)


def cores(metadata: Json, tally: Tally) -> pl.DataFrame:
    """Each core's kind, group and thread: group `g` is AIC `g` and the AIVs `2g` and `2g + 1`."""
    kinds, threads = _list(metadata, "core_types"), _list(metadata, "core_to_thread")
    rows: list[tuple[int, str | None, int | None, int | None]] = []
    seen = {"aic": 0, "aiv": 0}
    for core, kind in enumerate(kinds):
        thread = number(threads[core]) if core < len(threads) else None
        thread = thread if thread is not None and thread < 1 << 31 else None
        if not isinstance(kind, str) or kind not in seen:
            rows.append((core, None, None, thread))
            continue
        place, seen[kind] = seen[kind], seen[kind] + 1
        name = "AIC" if kind == "aic" else f"AIV{place % 2}"
        rows.append((core, name, place if kind == "aic" else place // 2, thread))
    if not rows:
        tally.notes.append("core_types is missing: core kinds and groups are not known")
    return _frame(rows, CORES)


def clock_hz(metadata: Json, tally: Tally) -> int:
    """Cycles a second; 10^9, with a note, when the file does not say."""
    hz = number(metadata.get("clock_freq_hz"))
    if hz and hz < 9_000_000_000:
        return hz
    tally.notes.append("clock_freq_hz is missing: a cycle is shown as a nanosecond")
    return UNKNOWN_HZ


def in_ns(cycles: str, hz: int) -> pl.Expr:
    """A column of cycles in nanoseconds; null where that would not fit into a time."""
    seconds, rest = pl.col(cycles) // hz, pl.col(cycles) % hz
    fits = seconds < FAR_S
    return pl.when(fits).then(seconds * 1_000_000_000 + rest * 1_000_000_000 // hz).alias(cycles)


def number(value: object) -> int | None:
    """A number from 0 that fits 64 bits; large ones are written as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= LAST_NUMBER else None  # type: ignore[operator,return-value]  # `is_number` says it


def _list(of: Json, name: str) -> list[Any]:
    found = of.get(name)
    return found if isinstance(found, list) else []


def _by_thread(records: Json, name: str) -> Iterator[tuple[int, Any]]:
    for thread, listed in enumerate(_list(records, name)):
        for phase in listed if isinstance(listed, list) else ():
            yield thread, phase


def _times(phase: object) -> tuple[int, int] | None:
    if not isinstance(phase, dict):
        return None
    start, end = number(phase.get("start_cycles")), number(phase.get("end_cycles"))
    return None if start is None or end is None or start > end else (start, end)


def _args(phase: Json, task: int | None) -> str | None:
    """What else a phase says, as JSON text."""
    known = {} if task is None else {"task": task}
    rest = {name: value for name, value in phase.items() if name not in _COLUMNS}
    return json.dumps(known | rest) if known or rest else None


def _are_numbers(row: object, least: int) -> bool:
    if not isinstance(row, list) or len(row) < least or not 0 <= (number(row[0]) or 0) < 1 << 31:
        return False
    return all(isinstance(each, int) and number(each) is not None for each in row[:least])


def _frame(rows: Iterable[Any], schema: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=schema, orient="row")
