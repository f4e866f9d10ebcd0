"""What a span is called, looked up for the few that are shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import polars as pl

from stepscope.app import palette
from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.lane import TABLES
from stepscope.app.timeline.lanes.steps import parts_of_batches, parts_of_steps
from stepscope.app.timeline.lanes.texts_by_number import numbers
from stepscope.app.timeline.listed.kept_rows import KeptRows
from stepscope.app.timeline.profile.top_names import shown
from stepscope.app.timeline.spans.packed import Ints
from stepscope.ingest.derive.collectives.calls import calls
from stepscope.ingest.schema import ON_DEVICE
from stepscope.ingest.trace import Trace

Row = dict[str, Any]

STEP_OF_BATCH = "step of a batch"
"""What a row of a batch stands for where no row of `steps` tells of its step."""
OF_REQUEST = "request of "
"""Before a table's name: a row of it is called by its request alone."""
OWNER = {"batch_rows": "request", "lifecycle": "request", "queue_order": "request",
         "allocations": "owner"}  # fmt: skip
"""The column of a table that has its request."""
CONTENTS = "contents of a buffer"
"""What a row of `accesses` stands for on the lane of its buffer."""
MOST_LABELS = 1 << 16
"""Labels that are kept, as who pans or zooms sees the same spans again."""
PHASES = (palette.RECOMPUTE, palette.PREFILL, palette.DECODE)


class Labels:
    """Short names of rows: `P 4` and `D 114` for steps, `qk_pv 7/8` for a block of a task."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._kept: dict[str, KeptRows] = {}
        self._parts: dict[str, KeptRows] = {}
        self._said = lru_cache(maxsize=MOST_LABELS)(_say)

    def of(self, table: str, rows: Ints, states: list[int]) -> list[str]:
        """Label of each row, plain text, given the state in which it is shown."""
        if table not in self._kept:
            self._kept[table] = _COLUMNS[table](self._trace)
        told, said = self._kept[table].take(rows), self._said
        return [said(table, row, state) for row, state in zip(told, states, strict=True)]

    def parts(self, table: str, rows: Ints) -> list[tuple[float, ...]]:
        """Shares of each mixed step's tokens (`palette.PARTS`); empty where none are recorded."""
        if table not in _PARTS:
            return [()] * len(rows)
        if table not in self._parts:
            self._parts[table] = _whole(_PARTS[table](self._trace).lazy())
        return [_shares(tokens) for tokens in self._parts[table].take(rows)]


def _say(table: str, row: tuple[Any, ...], state: int) -> str:
    wording, columns = _WORDING[table]
    return plain(wording(dict(zip(columns, row, strict=True)), state))


def _shares(tokens: tuple[int, ...]) -> tuple[float, ...]:
    whole = sum(tokens)
    return tuple(part / whole for part in tokens) if whole else ()


def _whole(rows: pl.LazyFrame) -> KeptRows:
    """Read at once: what is made of other rows takes as long for a part as for all of it."""
    whole = rows.collect()
    return KeptRows(whole.lazy(), len(whole), lambda part: part)


def _blocks(trace: Trace) -> KeptRows:
    columns = "rank", "task", "name", "num_blocks"
    tasks = trace.tasks.select(columns).unique(["rank", "task"], keep="first").collect()

    def named(blocks: pl.DataFrame) -> pl.DataFrame:
        found = blocks.join(tasks, on=["rank", "task"], how="left", maintain_order="left")
        return found.select("task", "block", "name", "num_blocks")

    rows = trace.core_spans.select("rank", "task", "block")
    return KeptRows(rows, trace.num_rows("core_spans"), named)


_OF_ACCESS, _OF_CONTENTS = ("op", "buffer", "event"), ("stream", "segment", "epoch")


def _accesses(trace: Trace, *columns: str) -> KeptRows:
    rows = trace.accesses.select(columns)
    return KeptRows(rows, trace.num_rows("accesses"), lambda part: part)


def _spans(trace: Trace) -> KeptRows:
    is_executed = pl.col("category").str.to_lowercase().is_in(ON_DEVICE)
    rows = trace.spans.select("name", is_executed)
    return KeptRows(rows, trace.num_rows("spans"), lambda part: part)


def _owners(table: str) -> Callable[[Trace], KeptRows]:
    """Requests of rows: few texts, so that of millions of rows a number each is kept."""
    column = pl.col(OWNER[table]).cast(pl.String).cast(numbers())
    return lambda trace: _whole(trace.table(table).select(request=column))


def _calls(trace: Trace) -> pl.LazyFrame:
    """A row for each collective: what it is, and whether it differs from those of other ranks."""
    rows = trace.collectives.select("op", "ordinal", "slot").with_row_index("ref")
    marks = calls(trace).drop_nulls("mark").select("ref", "mark").lazy()
    return rows.join(marks, on="ref", how="left", maintain_order="left").drop("ref")


_COLUMNS: dict[str, Callable[[Trace], KeptRows]] = {
    "steps": lambda trace: _whole(
        trace.steps.select("step", "kind", "num_prefill_reqs", "num_decode_reqs")
    ),
    "batch_rows": lambda trace: _whole(trace.batch_rows.select("num_tokens")),
    STEP_OF_BATCH: lambda trace: _whole(trace.batch_rows.select("step")),
    "lifecycle": lambda trace: _whole(trace.lifecycle.select("event", "cause")),
    "core_spans": _blocks,
    "spans": _spans,
    "queue_order": lambda trace: _whole(trace.queue_order.select("index")),
    "slot_tokens": lambda trace: _whole(trace.slot_tokens.select("num_tokens")),
    **{OF_REQUEST + table: _owners(table) for table in OWNER},
    "segments": lambda trace: _whole(
        trace.segments.select("phase", "num_rows", "num_tokens", "executed_path")
    ),
    "accesses": lambda trace: _accesses(trace, *_OF_ACCESS),
    CONTENTS: lambda trace: _accesses(trace, *_OF_CONTENTS),
    "collectives": lambda trace: _whole(_calls(trace)),
    "allocations": lambda trace: KeptRows(
        trace.allocations.select("owner"), trace.num_rows("allocations"), lambda part: part
    ),
}

_PARTS = {"steps": parts_of_steps, STEP_OF_BATCH: parts_of_batches}


def _step(row: Row, state: int) -> str:
    prefill, decode = row["num_prefill_reqs"], row["num_decode_reqs"]
    if state == palette.RECOMPUTE:
        return "R"
    if state == palette.MIXED:
        return f"{prefill or ''}P {decode or ''}D"
    if row["kind"] == "mixed" and state in PHASES:
        return f"{decode or ''}D" if state == palette.DECODE else f"{prefill or ''}P"
    if row["kind"] == "prefill":
        return f"P {prefill or ''}".strip()
    if row["kind"] == "decode":
        return f"D {decode or ''}".strip()
    return row["kind"] or f"step {row['step']}"


def _batch_row(row: Row, state: int) -> str:
    if state in palette.REASONS:
        return palette.STATES[state].name
    if state == palette.IDLE:
        return "in no batch"
    letter = palette.STATES[state].glyph
    return letter if row["num_tokens"] == 1 else f"{letter} {row['num_tokens']}"


def _step_of_batch(row: Row, state: int) -> str:
    is_known = state in (*PHASES, palette.MIXED)
    return palette.STATES[state].glyph if is_known else f"step {row['step']}"


def _lifecycle(row: Row, state: int) -> str:
    if state in palette.REASONS:
        return palette.STATES[state].name
    if state == palette.IDLE:
        return "in no batch"
    if state == palette.UNKNOWN:
        return "running"
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


def _span(row: Row, state: int) -> str:
    del state
    return shown(row["name"]) if row["is_executed"] else row["name"] or "unnamed"


def _queue_order(row: Row, state: int) -> str:
    del state
    return f"position {row['index']}"


def _slot_tokens(row: Row, state: int) -> str:
    old = "old " * (state == palette.HELD)
    return f"{old}tokens, {row['num_tokens']:,} in all"


def _owner(row: Row, state: int) -> str:
    del state
    return row["request"] or "unknown request"


def _segment(row: Row, state: int) -> str:
    """Phase, rows and tokens; and the path, where that says more than the phase."""
    del state
    parts = (
        row["phase"] or "segment",
        None if row["num_rows"] is None else f"{row['num_rows']:,} rows",
        None if row["num_tokens"] is None else f"{row['num_tokens']:,} tokens",
        None if row["executed_path"] == row["phase"] else row["executed_path"],
    )
    return " · ".join(part for part in parts if part)


def _access(row: Row, state: int) -> str:
    what = row["buffer"] or row["event"] or ""
    if state != palette.OVERWRITTEN:
        return f"{row['op'] or 'access'} {what}".rstrip()
    return f"overwrites {what}" if row["op"] == "write" else f"late {row['op']} of {what}"


def _contents(row: Row, state: int) -> str:
    """Whose contents they are: the segment that they were written for, and their epoch."""
    if state == palette.OVERWRITTEN:
        return "overwritten"
    parts = [f"{name} {row[name]}" for name in ("segment", "epoch") if row[name] is not None]
    return " · ".join(parts) or f"written by {row['stream'] or 'an unknown stream'}"


def call_name(op: str | None, ordinal: int | None, slot: int | None) -> str:
    """A collective by its operation, its place and its slot: `broadcast #34 slot 2`."""
    parts = [op or "collective"]
    parts += [] if ordinal is None else [f"#{ordinal}"]
    return " ".join(parts if slot is None else [*parts, f"slot {slot}"])


def _call(row: Row, state: int) -> str:
    name = call_name(row["op"], row["ordinal"], row["slot"])
    if state == palette.ABSENT:
        return f"never came to {name}"
    return f"{palette.DIVERGED_GLYPH} {name}" if row["mark"] else name


def _ownership(row: Row, state: int) -> str:
    return "cached" if state == palette.CACHED else row["owner"] or "no known owner"


_WORDING: dict[str, tuple[Callable[[Row, int], str], tuple[str, ...]]] = {
    "steps": (_step, ("step", "kind", "num_prefill_reqs", "num_decode_reqs")),
    "batch_rows": (_batch_row, ("num_tokens",)),
    STEP_OF_BATCH: (_step_of_batch, ("step",)),
    "lifecycle": (_lifecycle, ("event", "cause")),
    "core_spans": (_block, ("task", "block", "name", "num_blocks")),
    "spans": (_span, ("name", "is_executed")),
    "queue_order": (_queue_order, ("index",)),
    "slot_tokens": (_slot_tokens, ("num_tokens",)),
    **{OF_REQUEST + table: (_owner, ("request",)) for table in OWNER},
    "segments": (_segment, ("phase", "num_rows", "num_tokens", "executed_path")),
    "accesses": (_access, _OF_ACCESS),
    CONTENTS: (_contents, _OF_CONTENTS),
    "collectives": (_call, ("op", "ordinal", "slot", "mark")),
    "allocations": (_ownership, ("owner",)),
}
"""What says it, of which columns of a row."""
assert _WORDING.keys() == _COLUMNS.keys()
assert {*_WORDING} >= {*TABLES, STEP_OF_BATCH, CONTENTS} - {"counters"}
