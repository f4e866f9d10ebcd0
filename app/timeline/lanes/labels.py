"""What a span is called, looked up for the few that are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from stepscope.app import palette
from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.lane import TABLES
from stepscope.app.timeline.profile.top_names import shown
from stepscope.ingest.derive.launches import ON_DEVICE
from stepscope.ingest.trace import Trace

Row = dict[str, Any]

STEP_OF_BATCH = "step of a batch"
"""What a row of a batch stands for where no row of `steps` tells of its step."""
PHASES = (palette.RECOMPUTE, palette.PREFILL, palette.DECODE)


class Labels:
    """Short names of rows: `P 4` and `D 114` for steps, `qk_pv 7/8` for a block of a task."""

    def __init__(self, trace: Trace) -> None:
        self._frames = {table: columns(trace).collect() for table, columns in _COLUMNS.items()}

    def of(self, table: str, rows: list[int], states: list[int]) -> list[str]:
        """Label of each row, plain text, given the state in which it is shown."""
        named = self._frames[table][rows].iter_rows(named=True)
        wording = _WORDING[table]
        return [plain(wording(row, state)) for row, state in zip(named, states, strict=True)]


def _tasks(trace: Trace) -> pl.LazyFrame:
    tasks = trace.tasks.select("rank", "task", "name", "num_blocks").unique(
        ["rank", "task"], keep="first", maintain_order=True
    )
    blocks = trace.core_spans.select("rank", "task", "block")
    return blocks.join(tasks, on=["rank", "task"], how="left", maintain_order="left")


_COLUMNS: dict[str, Callable[[Trace], pl.LazyFrame]] = {
    "steps": lambda trace: trace.steps.select(
        "step", "kind", "num_prefill_reqs", "num_decode_reqs"
    ),
    "batch_rows": lambda trace: trace.batch_rows.select("num_tokens"),
    STEP_OF_BATCH: lambda trace: trace.batch_rows.select("step"),
    "lifecycle": lambda trace: trace.lifecycle.select("event", "cause"),
    "core_spans": _tasks,
    "spans": lambda trace: trace.spans.select(
        "name", executed=pl.col("category").str.to_lowercase().is_in(ON_DEVICE)
    ),
}


def _step(row: Row, state: int) -> str:
    prefill, decode = row["num_prefill_reqs"], row["num_decode_reqs"]
    if state == palette.RECOMPUTE:
        return "R"
    if row["kind"] == "mixed" and state in PHASES:
        return f"{decode or ''}D" if state == palette.DECODE else f"{prefill or ''}P"
    if row["kind"] == "prefill":
        return f"P {prefill or ''}".strip()
    if row["kind"] == "decode":
        return f"D {decode or ''}".strip()
    return row["kind"] or f"step {row['step']}"


def _batch_row(row: Row, state: int) -> str:
    if state == palette.IDLE:
        return "in no batch"
    letter = palette.STATES[state].glyph
    return letter if row["num_tokens"] == 1 else f"{letter} {row['num_tokens']}"


def _step_of_batch(row: Row, state: int) -> str:
    return palette.STATES[state].glyph if state in PHASES else f"step {row['step']}"


def _lifecycle(row: Row, state: int) -> str:
    if state == palette.IDLE:
        return "in no batch"
    if state == palette.PREEMPTED:
        return "preempted"
    if state == palette.FRONT_END:
        return "front end" if row["event"] == "receive" else "delivery"
    return "deferred" if row["event"] == "defer" else "waiting"


def block_name(name: str | None, task: int, block: int | None, num_blocks: int | None) -> str:
    """A block of a task: `qk_pv 7/8`; no number where there is one alone, or none is known."""
    name = name or f"task {task}"
    number = f" {block}" if num_blocks is None else f" {block}/{num_blocks}"
    return name if num_blocks == 1 or block is None else name + number


def _block(row: Row, state: int) -> str:
    block = block_name(row["name"], row["task"], row["block"], row["num_blocks"])
    return f"held for {block}" if state == palette.HELD else block


_WORDING: dict[str, Callable[[Row, int], str]] = {
    "steps": _step,
    "batch_rows": _batch_row,
    STEP_OF_BATCH: _step_of_batch,
    "lifecycle": _lifecycle,
    "core_spans": _block,
    "spans": lambda row, _: shown(row["name"]) if row["executed"] else row["name"] or "unnamed",
}
assert _WORDING.keys() == _COLUMNS.keys() == {*TABLES, STEP_OF_BATCH} - {"counters"}
