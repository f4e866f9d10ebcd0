"""What a partial recording lacks, one line each, to be shown next to the figures made of the rest.

A column that is null throughout was not recorded, and figures that need it are null. A figure is
partial in two cases. A column that a recorder fills in on every row may have gaps: counts, sums and
rates then cover only some of the rows. And a figure may come from another source, such as waiting
requests counted from events if no step counts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from weakref import WeakKeyDictionary

import polars as pl

from stepscope.analyzers.views.known import any_row, knows
from stepscope.ingest.columns import Table
from stepscope.ingest.manifest import UNREAD
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
"""Columns that the schema allows to be null, but that a rank records on every row or on none; those
of `lifecycle`, on every arrival. None of 226 recordings of the reference engine, vLLM and SGLang
has gaps in them."""

IN_EVERY_FORMAT = ("steps", "spans")
UNKNOWN = {"steps": ("kind",), "spans": ("track", "name"), "flows": ("flow", "end")}
"""Required columns that may be null in rows that mean something without them."""

_lines: WeakKeyDictionary[Trace, tuple[str, ...]] = WeakKeyDictionary()
_partial: WeakKeyDictionary[Trace, tuple[str, ...]] = WeakKeyDictionary()


def _num(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def partial(trace: Trace) -> tuple[str, ...]:
    """Return a line for everything that makes figures of a recording partial or of another source.

        Other formats leave out what they do not know, and their readers report it: for them there
    are only lines about the GPU.
    """
    if trace not in _partial:
        recorded = _other_sources(trace) if trace.manifest.is_recording else ()
        unread = _unread_columns(trace)
        _partial[trace] = (*unread, *missing_values(trace), *recorded, *_on_gpus(trace))
    return _partial[trace]


def _unread_columns(trace: Trace) -> list[str]:
    names = trace.manifest.config.get(UNREAD)
    if not isinstance(names, list) or not names:
        return []
    columns = "column" if len(names) == 1 else "columns"
    return [
        f"{columns} {', '.join(map(str, names))} of another version of stepscope cannot be read "
        "and are left out: upgrade stepscope to see them"
    ]


def missing_values(trace: Trace) -> tuple[str, ...]:
    """Return a line for each column of a recording with gaps, in the order of the schema.

    Gaps are nulls in required columns, and in columns of ON_EVERY_ROW for which the rank has
    values. Steps after the last one that ended may have no duration. In other formats, gaps are
    nulls in columns that every step and span has.
    """
    if trace not in _lines:
        _lines[trace] = tuple(_missing(trace))
    return _lines[trace]


def with_whole_rows(trace: Trace) -> Trace:
    """Return a recording without the rows that lack a required value, which mean nothing.

    Their tables become partial. `missing_values` of the result is that of the trace.
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
    """Make `missing_values` of a trace that of another one, from which its rows were taken."""
    _lines[trace] = missing_values(other)


def has_required(trace: Trace, table: str) -> bool:
    """Tell whether the rows of a recording's table, if any, have all identifying columns."""
    if not trace.manifest.is_recording or not trace.has(table):
        return True
    return knows(trace, *(f"{table}.{column}" for column in identifying(table)))


def identifying(table: str) -> list[str]:
    """The required columns without which a row means nothing: a step may be of unknown kind."""
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
    # Few recordings have gaps; only theirs are counted by rank.
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
    """The columns that are filled in on every row, and those on every row or none."""
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
    """Lines about figures whose usual source is not recorded."""
    has_steps, has_batches = knows(trace, "steps.ts_ns"), trace.has("batch_rows")
    if has_batches and not trace.has("lifecycle"):
        yield "no lifecycle is recorded: requests are counted from their first batch to their last"
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
        yield "no decision names the head of the queue: time queued after it counts as head"
    if trace.has("tasks") and not knows(trace, "core_spans.end_ns"):
        yield "no block on a core has an end: dispatch counts as prefill and decode"
    if trace.has("core_spans") and not knows(trace, "core_spans.dispatch_ns"):
        yield "no dispatch is recorded: shares of cores count from the first start of a block"


def _of_decisions(trace: Trace) -> Iterator[str]:
    if not knows(trace, "decisions.resource"):
        yield "no decision names what was short: unscheduled time counts as other"
    if not knows(trace, "decisions.step"):
        yield "no decision names its step: steps that considered no request are not known"


def _of_batches(trace: Trace) -> Iterator[str]:
    if trace.has("decisions") and not knows(trace, "batch_rows.is_final_chunk"):
        yield "no batch says which chunk ends a prefill: time after a chunk counts as no-budget"
    if not knows(trace, "batch_rows.num_computed"):
        yield "no batch says what was computed before: later chunks of a prompt count as its first"
    if not knows(trace, "batch_rows.is_recompute") and _was_preempted(trace):
        yield "no batch says what is computed again: recomputation counts as prefill and decode"


def _on_gpus(trace: Trace) -> Iterator[str]:
    """Lines about kernels and about the steps that launched them."""
    if not trace.has("spans"):
        return
    on_gpu = trace.spans.filter(pl.col("category").str.to_lowercase().is_in(ON_DEVICE))
    told = on_gpu.select(pl.len(), pl.col("name").null_count(), pl.col("correlation").count())
    num, num_unnamed, num_launched = told.collect().row(0)
    if not num:
        return
    if num_unnamed:
        yield f"{_num(num_unnamed, 'kernel')} without a name, and thus of unknown kind"
    if not num_launched:
        yield "no kernel names the call that launched it: gpu-wait counts as launch or idle"
    if trace.has("steps"):
        if not trace.manifest.is_recording:
            yield from without_durations(trace)
        if not knows(trace, "steps.cpu_dur_ns", "steps.gpu_ts_ns"):
            yield "no step says when it launched kernels: launch counts as idle"


def without_durations(trace: Trace) -> Iterator[str]:
    """Return the line about steps without a duration that are not the last of their rank."""
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
