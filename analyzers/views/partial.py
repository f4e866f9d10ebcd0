"""What a recording lacks in part, in a line each: figures made of the rest say so with these.

A column that is null throughout was not recorded, and a figure that needs it is null. Two things
leave a figure that is not the one of the whole recording. A column that a recorder fills in on
every row may have gaps: counts, sums and rates are then of a part of the rows. And a figure may be
made of something else, such as waiting requests of events where no step counts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from weakref import WeakKeyDictionary

import polars as pl

from stepscope.analyzers.views.known import any_row, knows
from stepscope.ingest.columns import Table
from stepscope.ingest.schema import BY_NAME, ON_DEVICE, TABLES
from stepscope.ingest.trace import Trace

ON_EVERY_ROW = {
    "steps": (
        "dur_ns", "num_prefill_reqs", "num_decode_reqs", "num_prefill_tokens", "num_decode_tokens",
        "num_waiting", "num_running", "kv_blocks_free", "kv_blocks_total", "formed_ns",
    ),
    "batch_rows": ("row", "num_computed", "prompt_len"),
    "lifecycle": ("prompt_len", "max_tokens", "priority"),
    "decisions": ("step",),
    "allocations": ("step",),
    "accesses": ("step",),
    "tasks": ("step", "core_mask", "is_sync_start", "outcome"),
    "core_spans": ("step", "core_kind", "slot", "ready_ns", "dispatch_ns", "thread"),
    "collectives": ("num_bytes", "group"),
    "outputs": ("step", "source_step"),
}  # fmt: skip
"""Columns that may be null in the schema, and that a rank records on every row or on none; those of
`lifecycle` on every arrival. Of 226 recordings of the reference engine, vLLM and SGLang none has
one with gaps."""

IN_EVERY_FORMAT = ("steps", "spans")
UNKNOWN = {"steps": ("kind",), "spans": ("track", "name"), "flows": ("flow", "end")}
"""Required columns that may be unknown of what there is all the same."""

_lines: WeakKeyDictionary[Trace, tuple[str, ...]] = WeakKeyDictionary()
_partial: WeakKeyDictionary[Trace, tuple[str, ...]] = WeakKeyDictionary()


def _num(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def partial(trace: Trace) -> tuple[str, ...]:
    """Return a line for all that makes figures of a recording partial, or of another source.

    Other formats leave out what they do not know, and their readers say so: of them there is none,
    but for what a GPU did.
    """
    if trace not in _partial:
        recorded = _other_sources(trace) if trace.manifest.is_recording else ()
        _partial[trace] = (*missing_values(trace), *recorded, *_on_gpus(trace))
    return _partial[trace]


def missing_values(trace: Trace) -> tuple[str, ...]:
    """Return a line for each column of a recording with gaps, in the order of the schema.

    Gaps are nulls in required columns, and in those of ON_EVERY_ROW where the rank has values. A
    step after the last that ended may have no duration. Of other formats they are nulls in what
    every step and span has.
    """
    if trace not in _lines:
        _lines[trace] = tuple(_missing(trace))
    return _lines[trace]


def with_whole_rows(trace: Trace) -> Trace:
    """Return a recording without the rows that lack a required value, which say nothing.

    Their tables are partial then. What is missing is told of the result as of the trace.
    """
    named = (line.partition(" ")[0].split(".") for line in missing_values(trace))
    broken = dict.fromkeys(table for table, column in named if column in identifying(table))
    frames = {table: trace.table(table).drop_nulls(identifying(table)) for table in broken}
    if not frames:
        return trace
    tables = trace.manifest.tables | dict.fromkeys(frames, "partial")
    whole = Trace(
        {table.name: frames.get(table.name, trace.table(table.name)) for table in TABLES},
        replace(trace.manifest, tables=tables), trace.name, trace.path,
    )  # fmt: skip
    missing_as_of(whole, trace)
    return whole


def missing_as_of(trace: Trace, other: Trace) -> None:
    """Have `missing_values` say of a trace what it says of another, of which it has rows."""
    _lines[trace] = missing_values(other)


def has_required(trace: Trace, table: str) -> bool:
    """Tell whether rows of a recording's table, if any, have what they say nothing without."""
    if not trace.manifest.is_recording or not trace.has(table):
        return True
    return knows(trace, *(f"{table}.{column}" for column in identifying(table)))


def identifying(table: str) -> list[str]:
    """The required columns without which a row says nothing: a step of unknown kind is a step."""
    return [name for name in BY_NAME[table].required if name not in UNKNOWN.get(table, ())]


def _missing(trace: Trace) -> list[str]:
    recorded = [table for table in TABLES if trace.has(table.name)]
    if not trace.manifest.is_recording:
        recorded = [table for table in recorded if table.name in IN_EVERY_FORMAT]
    columns = {table.name: _filled_in(trace, table) for table in recorded}
    nulls = pl.collect_all(
        trace.table(table.name).select(chain(*columns[table.name])).null_count()
        for table in recorded
    )
    # Few recordings have any, and only of these is it counted by rank.
    tables = [
        table for table, num in zip(recorded, nulls, strict=True) if sum(num.row(0, named=False))
    ]
    gaps = pl.collect_all(
        _gaps(trace.table(table.name), table.name, *columns[table.name]) for table in tables
    )
    return [
        f"{table.name}.{name} is missing in {num:,} of {_num(trace.num_rows(table.name), 'row')}"
        for table, found in zip(tables, gaps, strict=True)
        for name, num in found.row(0, named=True).items()
        if num
    ]


def _filled_in(trace: Trace, table: Table) -> tuple[list[str], list[str]]:
    """The columns of a table that are filled in on every row, and those on every one or none."""
    required = identifying(table.name)
    if not trace.manifest.is_recording:
        return required, []
    if table.name == "steps":
        required = [*table.required]
    return required, [*ON_EVERY_ROW.get(table.name, ())]


def _gaps(rows: pl.LazyFrame, table: str, required: list[str], steady: list[str]) -> pl.LazyFrame:
    by_rank = rows.group_by("rank").agg(
        *(pl.col(name).null_count() for name in required),
        *(_unless_throughout(table, name) for name in steady),
    )
    return by_rank.select(pl.col(*required, *steady).sum())


def _unless_throughout(table: str, name: str) -> pl.Expr:
    column = pl.col(name)
    gaps = column.null_count()
    if name == "dur_ns":
        last_ended_ns = pl.col("ts_ns").filter(column.is_not_null()).max()
        gaps = (column.is_null() & (pl.col("ts_ns") < last_ended_ns)).sum()
    if table == "lifecycle":
        arrived = column.filter(pl.col("event") == "arrive")
        column, gaps = arrived, arrived.null_count()
    return pl.when(column.count() > 0).then(gaps).otherwise(0).alias(name)


def _other_sources(trace: Trace) -> Iterator[str]:
    """What figures are made of where that is not recorded which they usually are made of."""
    has_steps, has_batches = knows(trace, "steps.ts_ns"), trace.has("batch_rows")
    if has_batches and not trace.has("lifecycle"):
        yield "no lifecycle is recorded: requests are those in batches, from the first to the last"
    if has_batches and not has_steps:
        yield "no steps are recorded: a batch is taken to last until the next one"
    yield from without_durations(trace)
    if trace.has("lifecycle") and not knows(trace, "steps.num_waiting"):
        yield "no step counts waiting requests: they are counted from the events of requests"
    if has_batches:
        yield from _of_batches(trace)
    if trace.has("decisions"):
        yield from _of_decisions(trace)
    if not knows(trace, "decisions.holder") and _is_behind_a_head(trace):
        yield "no decision names the head of the queue: time behind it counts as head"
    if trace.has("tasks") and not knows(trace, "core_spans.end_ns"):
        yield "no core is known to have executed: dispatch counts as prefill and decode"
    if trace.has("core_spans") and not knows(trace, "core_spans.dispatch_ns"):
        yield "no dispatch is recorded: shares of cores are of the time from the first begin"


def _of_decisions(trace: Trace) -> Iterator[str]:
    if not knows(trace, "decisions.resource"):
        yield "no decision names what was short: time that a request was left out counts as other"
    if not knows(trace, "decisions.step"):
        yield "no decision names its step: in which one nobody was looked at is not known"


def _of_batches(trace: Trace) -> Iterator[str]:
    if trace.has("decisions") and not knows(trace, "batch_rows.is_final_chunk"):
        yield "no batch says which chunk ends a prefill: time behind a chunk counts as no-budget"
    if not knows(trace, "batch_rows.num_computed"):
        yield "no batch says what was computed before: later chunks of a prompt count as its first"
    if not knows(trace, "batch_rows.is_recompute") and _was_preempted(trace):
        yield "no batch says what is computed again: recomputation counts as prefill and decode"


def _on_gpus(trace: Trace) -> Iterator[str]:
    """What is missing of kernels and of the steps that launched them."""
    if not trace.has("spans"):
        return
    on_gpu = trace.spans.filter(pl.col("category").str.to_lowercase().is_in(ON_DEVICE))
    told = on_gpu.select(pl.len(), pl.col("name").null_count(), pl.col("correlation").count())
    num, num_unnamed, num_launched = told.collect().row(0)
    if not num:
        return
    if num_unnamed:
        yield f"{_num(num_unnamed, 'kernel')} without a name: what kind they are is not known"
    if not num_launched:
        yield "no kernel names the call that launched it: gpu-wait counts as launch or idle"
    if trace.has("steps"):
        if not trace.manifest.is_recording:
            yield from without_durations(trace)
        if not knows(trace, "steps.cpu_dur_ns", "steps.gpu_ts_ns"):
            yield "no step says when it launched kernels: launch counts as idle"


def without_durations(trace: Trace) -> Iterator[str]:
    """Return the line on steps that do not say how long they took and have one after them."""
    unknown = trace.steps.filter(pl.col("dur_ns").is_null(), pl.col("ts_ns").is_not_null())
    is_last = pl.col("ts_ns") == pl.col("ts_ns").max().over("rank")
    last = trace.steps.filter(is_last, pl.col("dur_ns").is_null())
    counts = [rows.select(pl.len()).collect().item() for rows in (unknown, last)]
    if (num := counts[0] - counts[1]) > 0:
        yield (
            f"{_num(num, 'step')} without a duration: each is taken to last until the next one, "
            "so that no time between two of them is idle"
        )


def _was_preempted(trace: Trace) -> bool:
    return any_row(trace.lifecycle.filter(pl.col("event") == "preempt"))


def _is_behind_a_head(trace: Trace) -> bool:
    return any_row(trace.decisions.filter(pl.col("resource") == "queue"))
