"""What both fronts print about a step: its batch, what changed, who was left out, the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.summary.step_on_gpu import StepOnGpu, step_on_gpu
from stepscope.app.debug.changes import changes_between
from stepscope.app.debug.engine_state import State
from stepscope.app.debug.held.near_rows import NearRows
from stepscope.app.debug.names import CoreName, Names, names_in
from stepscope.app.debug.reasons import LeftOut
from stepscope.app.present.blocks import Table
from stepscope.app.present.step_words import of_both, tokens
from stepscope.app.present.summary.step_gpu_tables import on_gpu_tables
from stepscope.app.present.where import RESOLUTION_NS
from stepscope.app.printable import plain
from stepscope.app.units import duration, moment
from stepscope.ingest.derive.buffer_contents import buffer_contents
from stepscope.ingest.trace import Trace

MAX_ROWS = 200
TABLES = ("steps", "batch_rows", "decisions", "core_spans", "segments", "collectives", "accesses")
"""Whose rows a detail is made of."""


@dataclass(frozen=True, slots=True)
class StepDetail:
    """A step, the states before and after its batch was formed, and who was left out.

    `step` is the row of `steps` (empty where there is none), `rows` those of `batch_rows`, and
    `decisions` what was decided in the step; their text is as recorded. `tables()` is all of it
    as plain text, ready to print; its times are since `first_ns`, when the trace begins. `on_gpu`
    is None where the trace has nothing that the step launched on one.
    """

    rank: int
    step: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...]
    before: State
    after: State
    left_out: tuple[LeftOut, ...]
    decisions: tuple[Mapping[str, Any], ...]
    device: tuple[Mapping[str, Any], ...]
    names: Names = field(default_factory=Names)
    first_ns: int = 0
    on_gpu: StepOnGpu | None = None
    segments: tuple[Mapping[str, Any], ...] = ()
    collectives: tuple[Mapping[str, Any], ...] = ()
    buffers: tuple[Mapping[str, Any], ...] = ()

    def tables(self) -> tuple[Table, ...]:
        """The detail as tables, without those that would be empty."""
        made = (
            _header(self),
            *self.gpu_tables(),
            _told(_batch(self.rows)),
            _changes(self.before, self.after, self.names),
            _told(_left_out(self.left_out)),
            _told(_decided(self.decisions)),
            _device(self.device),
            *self.part_tables(),
        )
        return tuple(table for table in made if table.rows)

    def part_tables(self) -> tuple[Table, ...]:
        """The segments of the step, its collectives, and the buffers that it touched."""
        made = (_segments(self.segments), _collectives(self.collectives), _buffers(self.buffers))
        return tuple(_told(table) for table in made if table.rows)

    def gpu_tables(self) -> tuple[Table, ...]:
        """What the GPU executed of the step; none where that is not known."""
        return on_gpu_tables(self.on_gpu) if self.on_gpu else ()


def detail_of(
    trace: Trace,
    rank: int,
    near: NearRows,
    before: State,
    after: State,
    left_out: Sequence[LeftOut],
    cores: Mapping[int, CoreName],
) -> StepDetail:
    """Read a step's rows; the states and reasons are those of the session's position."""
    steps, rows, decisions, spans, segments, collectives, accesses = near.at(
        "step", after.step, TABLES
    )
    rows = rows.sort("row", nulls_last=True, maintain_order=True)
    decisions = decisions.filter(pl.col("subject_kind") == "bucket")
    device = _by_shape(spans)
    return StepDetail(
        rank,
        steps.row(0, named=True) if len(steps) else {},
        tuple(rows.iter_rows(named=True)),
        before,
        after,
        tuple(left_out),
        tuple(decisions.iter_rows(named=True)),
        tuple(device.iter_rows(named=True)),
        names_in(trace, rank, cores, (before, after)),
        on_gpu=None if after.step is None else step_on_gpu(trace, rank, after.step),
        segments=_in_order(segments, "segment"),
        collectives=_in_order(collectives, "ts_ns"),
        buffers=_touched(accesses, segments, has_times=trace.manifest.clock.has_times),
    )


def _by_shape(core_spans: pl.DataFrame) -> pl.DataFrame:
    """Per shape: tasks, blocks, parts on cores, and how long cores ran them if all have ended."""
    have_ended = pl.col("end_ns").is_not_null().all()
    run_ns = pl.when(have_ended).then((pl.col("end_ns") - pl.col("ts_ns")).sum())
    blocks = pl.struct("task", "block").n_unique()
    parts = core_spans.group_by("shape").agg(
        num_tasks=pl.col("task").n_unique(), num_blocks=blocks, num_parts=pl.len(), run_ns=run_ns
    )
    return parts.sort("shape")


def _in_order(rows: pl.DataFrame, column: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(rows.sort(column, nulls_last=True, maintain_order=True).iter_rows(named=True))


def _touched(
    accesses: pl.DataFrame, segments: pl.DataFrame, *, has_times: bool
) -> tuple[Mapping[str, Any], ...]:
    """The buffers that a step touched: how often, who last, and reads of what was overwritten."""
    named = accesses.drop_nulls("buffer")
    if named.is_empty():
        return ()
    reads = buffer_contents(accesses.lazy(), segments.lazy(), has_times=has_times).reads
    late = reads.filter(pl.col("overwrite_ref").is_not_null())["ref"]
    op, is_late = pl.col("op"), pl.col("ref").is_in(late.implode())
    touched = (
        accesses.with_row_index("ref")
        .drop_nulls("buffer")
        .sort("ts_ns", maintain_order=True)
        .group_by("buffer")
        .agg(
            pl.col("epoch").drop_nulls().last(),
            pl.col("op", "stream").last(),
            num_writes=(op == "write").sum(),
            num_reads=op.is_in(["read", "copy"]).sum(),
            num_late=is_late.sum(),
        )
    )
    return tuple(touched.sort("buffer").iter_rows(named=True))


def _told(table: Table) -> Table:
    """The table without columns of which nothing is known in any row."""
    told = [at for at in range(len(table.columns)) if any(row[at] for row in table.rows)]
    rows = tuple(tuple(row[at] for at in told) for row in table.rows)
    return replace(table, columns=tuple(table.columns[at] for at in told), rows=rows)


def _header(detail: StepDetail) -> Table:
    step = detail.step
    facts = {
        "step": detail.after.step,
        "kind": step.get("kind"),
        "formed": _moment(detail, "formed_ns"),
        "began": _moment(detail, "ts_ns"),
        "took": _time(step.get("dur_ns")),
        "on the CPU": _time(step.get("cpu_dur_ns")),
        "on the GPU": _gpu(step),
        "tokens": tokens(step),
        "requests": of_both(step, "num_prefill_reqs", "num_decode_reqs"),
        "waiting": step.get("num_waiting"),
        "running": step.get("num_running"),
        "KV blocks free": _free(step),
        "runs it for": None if (rank := step.get("by_rank")) is None else f"rank {rank}",
        "reserve ratio": step.get("reserve_ratio"),
        "pipeline stage": step.get("pp_stage"),
        "path": step.get("executed_path"),
        "read from": step.get("tag"),
        "inferred": step.get("inferred"),
    }
    rows = tuple((name, _text(fact)) for name, fact in facts.items() if fact not in (None, ""))
    return Table(("", ""), rows if detail.after.step is not None else (), "step")


def _batch(rows: Sequence[Mapping[str, Any]]) -> Table:
    columns = ("row", "request", "phase", "tokens", "computed", "of prompt", "slot", "")
    shown = tuple(
        (
            _text(row["row"]), _text(row["request"]), _text(row["phase"]), _text(row["num_tokens"]),
            _text(row["num_computed"]), _text(row["prompt_len"]), _text(row["slot"]),
            "recompute" if row["is_recompute"] else "",
        )
        for row in rows[:MAX_ROWS]
    )  # fmt: skip
    numbers = ("row", "tokens", "computed", "of prompt", "slot")
    return Table(columns, shown, "batch", numbers, num_more=len(rows) - len(shown))


def _changes(before: State, after: State, names: Names) -> Table:
    rows = tuple(
        (plain(change.what), plain(change.before), plain(change.after))
        for change in changes_between(before, after, names)
    )
    return Table(("", "before", "after"), rows, "changed")


def _left_out(left_out: Sequence[LeftOut]) -> Table:
    names = ("verdict", "reason", "resource", "needed", "available", "holder", "instead", "step")
    shown = tuple(
        (_text(left.request), *(_text(getattr(left, name)) for name in names))
        if left.verdict
        else (_text(left.request), "", "no reason recorded", *("" for _ in names[2:]))
        for left in left_out[:MAX_ROWS]
    )
    columns = ("request", *names[:-1], "decided in step")
    numbers = ("needed", "available")
    return Table(columns, shown, "left out", numbers, num_more=len(left_out) - len(shown))


def _decided(decisions: Sequence[Mapping[str, Any]]) -> Table:
    names = ("subject", "verdict", "reason", "needed", "holder", "instead")
    shown = tuple(tuple(_text(row[name]) for name in names) for row in decisions[:MAX_ROWS])
    columns = ("bucket", "verdict", "reason", "needed", "oldest", "instead")
    return Table(columns, shown, "buckets", num_more=len(decisions) - len(shown))


def _device(device: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (
            _text(row["shape"]), _text(row["num_tasks"]), _text(row["num_blocks"]),
            _text(row["num_parts"]), _time(row["run_ns"]),
        )
        for row in device
    )  # fmt: skip
    return Table(("shape", "tasks", "blocks", "parts", "core time"), rows, "core groups")


def _segments(segments: Sequence[Mapping[str, Any]]) -> Table:
    names = ("segment", "phase", "first_row", "num_rows", "num_tokens", "first_cu_len",
             "last_cu_len", "input_ids_len", "positions_len", "slot_mapping_len",
             "executed_path")  # fmt: skip
    columns = ("segment", "phase", "first row", "rows", "tokens", "first length", "last length",
               "input_ids", "positions", "slot_mapping", "path")  # fmt: skip
    shown = tuple(tuple(_text(row[name]) for name in names) for row in segments[:MAX_ROWS])
    more = len(segments) - len(shown)
    return Table(columns, shown, "segments", _but(columns, "phase", "path"), num_more=more)


def _collectives(collectives: Sequence[Mapping[str, Any]]) -> Table:
    names = ("ordinal", "op", "group", "stream", "num_elements", "num_bytes", "rows")
    columns = ("ordinal", "op", "group", "stream", "elements", "bytes", "rows", "took")
    shown = tuple(
        (*(_text(row[name]) for name in names), _time(row["dur_ns"]))
        for row in collectives[:MAX_ROWS]
    )
    numbers = ("ordinal", "elements", "bytes", "took")
    more = len(collectives) - len(shown)
    return Table(columns, shown, "collectives", numbers, num_more=more)


def _buffers(buffers: Sequence[Mapping[str, Any]]) -> Table:
    columns = ("buffer", "epoch", "writes", "reads", "last", "overwritten")
    shown = tuple(
        (
            _text(row["buffer"]), _text(row["epoch"]), _text(row["num_writes"]),
            _text(row["num_reads"]), _text(f"{row['op'] or 'access'} on {row['stream'] or '?'}"),
            times(row["num_late"], "read") if row["num_late"] else "",
        )
        for row in buffers[:MAX_ROWS]
    )  # fmt: skip
    numbers, more = ("epoch", "writes", "reads"), len(buffers) - len(shown)
    return Table(columns, shown, "buffers", numbers, num_more=more)


def _but(columns: Sequence[str], *others: str) -> tuple[str, ...]:
    return tuple(name for name in columns if name not in others)


def _moment(detail: StepDetail, column: str) -> str:
    ts_ns = detail.step.get(column)
    return "" if ts_ns is None else moment(ts_ns - detail.first_ns, RESOLUTION_NS)


def _gpu(step: Mapping[str, Any]) -> str:
    """How long its kernels ran, and when: empty where nothing is known of them."""
    begun, lasted, busy = (step.get(f"gpu_{name}_ns") for name in ("ts", "dur", "busy"))
    if begun is None or lasted is None or busy is None:
        return ""
    after = begun - step["ts_ns"]
    return f"busy for {_time(busy)}, from {_time(after)} to {_time(after + lasted)} of it"


def _free(step: Mapping[str, Any]) -> str:
    free, total = step.get("kv_blocks_free"), step.get("kv_blocks_total")
    if free is None:
        return ""
    cached = step.get("kv_blocks_cached")
    told = f"{free:,}" if total is None else f"{free:,} of {total:,}"
    return told if cached is None else f"{told}, {cached:,} of them cached"


def _time(ns: int | None) -> str:
    return "" if ns is None else duration(ns)


def _text(fact: object) -> str:
    if isinstance(fact, int):
        return f"{fact:,}"
    return "" if fact is None else plain(str(fact))
