"""`stepscope info`: what a trace holds, and what could not be had from its source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress
from stepscope.app.printable import plain
from stepscope.app.text_table import format_table

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

SHOWN = 8  # of a list of names: enough to know it by
WORDS = ("read", "skipped", "repaired", "inferred")
MOST_KINDS = 12
COUNTED = (
    ("tasks", "tasks", "shape"),
    ("outcomes", "tasks", "outcome"),
    ("edges", "task_edges", "source"),
    ("requests", "lifecycle", "event"),
)
# What Chrome JSON calls its events by a letter.
LETTERS = {
    "X": "slices", "B": "begins of slices", "E": "ends of slices", "i": "instants", "I": "instants",
    "C": "counters", "M": "names and other metadata", "s": "starts of flows", "t": "steps of flows",
    "f": "ends of flows", "b": "begins of asynchronous slices", "n": "asynchronous instants",
    "e": "ends of asynchronous slices",
    "bind_id with flow_out": "slices at which a flow starts",
    "bind_id with flow_in and flow_out": "slices through which a flow goes",
    "bind_id with flow_in": "slices at which a flow ends",
}  # fmt: skip


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text",
              show_default=True, help="Output format.")  # fmt: skip
@opens_traces
def info(trace: Path, form: str, open_trace: OpenTrace) -> None:
    """Show what is in TRACE: its producer, ranks, tables, rows, and steps by kind.

    Prints how many events were read, skipped, repaired, inferred, dropped or recovered, and how
    many rules can judge the trace. Times count from the first row.
    """
    with progress() as report:
        opened = open_trace(trace, report)
        text = json.dumps(as_dict(opened), indent=2) if form == "json" else as_text(opened)
    click.echo(text)


def as_dict(trace: Trace) -> dict[str, Any]:
    """Return what a program wants to know: the manifest, tables, and which rules could judge."""
    from stepscope.analyzers.check.coverage import coverage
    from stepscope.analyzers.views.partial import partial
    from stepscope.ingest.derive.order import how_known
    from stepscope.ingest.display import steps_by_kind, table_rows
    from stepscope.ingest.summary import extents, kinds, lengths, rings

    manifest = asdict(trace.manifest)
    del manifest["tables"]
    times = extents(trace)
    return {
        "trace": trace.name,
        **manifest,
        "start_ns": min((first for first, _ in times.values()), default=None),
        "end_ns": max((last for _, last in times.values()), default=None),
        "steps": steps_by_kind(trace.steps),
        "tasks": kinds(trace, "tasks", "shape"),
        "task_edges": kinds(trace, "task_edges", "source"),
        "lifecycle": kinds(trace, "lifecycle", "event"),
        "tokens": {name: known and asdict(known) for name, known in lengths(trace).items()},
        "order": how_known(trace),
        "rings": [asdict(ring) for ring in rings(trace)],
        "tables": {
            name: {"rows": rows, "state": state or "complete"}
            for name, rows, state in table_rows(trace.manifest, trace.rows_by_table())
        },
        "partial": list(partial(trace)),
        "coverage": coverage(trace).as_dict(),
    }


def as_text(trace: Trace) -> str:
    """Return what a person wants to know, safe for a terminal."""
    from stepscope.app.present.blocks import Fact
    from stepscope.app.present.plain_text import lines

    about = lines(Fact(name, (text,)) for name, text in _about(trace))
    parts = [
        about, _table_lines(trace), _step_lines(trace), _rank_lines(trace), _ring_lines(trace),
        _report_lines(trace), _note_lines(trace),
    ]  # fmt: skip
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _about(trace: Trace) -> Iterator[tuple[str, str]]:
    from stepscope.analyzers.check.coverage import coverage
    from stepscope.app.present.about import identity
    from stepscope.ingest.derive.order import how_known
    from stepscope.ingest.summary import kinds

    yield "trace", trace.name
    yield from identity(trace)
    yield from _device(trace)
    for name, table, column in COUNTED:
        if trace.has(table):
            counts = kinds(trace, table, column)
            each = ", ".join(f"{num:,} {kind}" for kind, num in counts.items())
            yield name, each if len(counts) <= MOST_KINDS else f"{len(counts):,} kinds of {column}"
    yield from _lengths(trace)
    if how_known(trace) == "inferred":
        yield "order", "of what happened at one time: inferred, as no row has its place"
    yield "rules", coverage(trace).share


def _device(trace: Trace) -> Iterator[tuple[str, str]]:
    from stepscope.ingest.derive.npu import NPU_KERNELS

    config = trace.manifest.config
    device, kernels = config.get("device"), config.get("kernels")
    types = device.get("core_types") if isinstance(device, dict) else None
    if isinstance(types, list) and types:
        counts = {kind: types.count(kind) for kind in ("aic", "aiv")}
        by_kind = ", ".join(f"{num:,} {kind.upper()}" for kind, num in counts.items() if num)
        yield "cores", f"{len(types):,}: {by_kind}"
    if isinstance(kernels, dict) and kernels:
        yield "kernels", f"{len(kernels):,}: {_listed([str(name) for name in kernels.values()])}"
    shapes = config.get(NPU_KERNELS)
    if isinstance(shapes, dict) and shapes:
        by_shape = ", ".join(f"{num:,} {shape}" for shape, num in shapes.items())
        yield "kernels", f"{sum(shapes.values()):,} on cores of the NPU: {by_shape}"


def _lengths(trace: Trace) -> Iterator[tuple[str, str]]:
    """How long prompts are, how much output was asked for at most, and how much of it came."""
    from stepscope.ingest.summary import lengths

    for name, known in lengths(trace).items():
        if known:
            mean, most, total = known.mean, known.most, known.total
            yield name, f"{mean:,.0f} tokens on average, {most:,} at most, {total:,} in all"


def _listed(names: list[str]) -> str:
    more = f", and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _table_lines(trace: Trace) -> list[str]:
    from stepscope.app.units import length
    from stepscope.ingest.display import table_rows
    from stepscope.ingest.summary import extents

    times = extents(trace)
    began = min((first for first, _ in times.values()), default=0)
    rows = [
        (name, num, state or "complete", *(length(ns - began) for ns in times.get(name, ())))
        for name, num, state in table_rows(trace.manifest, trace.rows_by_table())
    ]
    filled = [(*row, *("-",) * (5 - len(row))) for row in rows]
    return format_table(("table", "rows", "state", "from", "to"), filled) if rows else ["no rows"]


def _step_lines(trace: Trace) -> list[str]:
    """Say what the steps of each kind held in all: a trace of one step shows that step.

    Where steps overlap, each counts for the time in which none before it ran.
    """
    import polars as pl

    from stepscope.analyzers.views.batches import formed, own_times

    sums = ("num_prefill_reqs", "num_prefill_tokens", "num_decode_reqs", "num_decode_tokens")
    known = [
        pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name) for name in sums
    ]
    on_gpu = [pl.col(name).sum() / 1e6 for name in ("cpu_dur_ns", "gpu_busy_ns")]
    took = pl.when(pl.col("dur_ns").count() > 0).then((pl.col("to_ns") - pl.col("from_ns")).sum())
    held = (
        own_times(formed(trace))
        .group_by(pl.col("kind").fill_null("unknown"))
        .agg(pl.len(), *known, took / 1e6, *on_gpu)
    )
    rows = held.sort("len", descending=True).collect().rows()
    header = ("steps of", "steps", "prefill rows", "tokens", "decode rows", "tokens", "ms")
    if trace.steps.select(pl.col("gpu_busy_ns").count()).collect().item():
        return format_table((*header, "CPU ms", "GPU busy ms"), rows)
    return format_table(header, [row[: len(header)] for row in rows]) if rows else []


def _rank_lines(trace: Trace) -> list[str]:
    """Say from where each of several ranks is, and how well its clock agrees with the first's."""
    from stepscope.app.units import duration
    from stepscope.ingest.display import sources

    named = sources(trace.manifest)
    if len(named) < 2:
        return []
    clocks = trace.manifest.config.get("clocks")
    known = clocks if isinstance(clocks, dict) else {}
    rows = []
    for rank, name in sorted(named.items(), key=lambda each: int(each[0])):
        found = known.get(rank) or {}
        keys = ("moved_ns", "residual_ns", "least_ns", "most_ns")
        compared = [None if (ns := found.get(key)) is None else duration(ns) for key in keys]
        rows.append((int(rank), name, *compared, found.get("collectives"), found.get("paired_by")))
    header = (
        "rank", "source", "clock moved by", "residual", "ahead by at least", "at most",
        "collectives", "paired by",
    )  # fmt: skip
    return format_table(header, rows) if known else format_table(header[:2], [r[:2] for r in rows])


def _ring_lines(trace: Trace) -> list[str]:
    from stepscope.ingest.summary import rings

    rows = [
        (each.ring, each.what, each.samples, int(each.most), each.size or None, each.unit)
        for each in rings(trace)
        if each.most
    ]
    return format_table(("ring", "holds", "samples", "at most", "of", ""), rows) if rows else []


def _report_lines(trace: Trace) -> list[str]:
    """Say what became of what the source holds, by count."""
    report = trace.manifest.report
    if not report:
        return []
    counted = [
        (word, f"{number:,}", what)
        for word in WORDS
        for what, number in getattr(report, word).items()
        if number
    ]
    width = max((len(number) for _, number, _ in counted), default=0)
    firsts = {word: what for word, _, what in reversed(counted)}
    return [
        f"{word if firsts[word] == what else '':<8}  {number:>{width}}  {_spelt(what)}"
        for word, number, what in counted
    ]


def _spelt(what: str) -> str:
    return f"{what}, {LETTERS[what]}" if what in LETTERS else plain(what)


def _note_lines(trace: Trace) -> list[str]:
    from stepscope.analyzers.views.partial import partial
    from stepscope.app.present.blocks import Items
    from stepscope.app.present.plain_text import lines
    from stepscope.ingest.display import doubts

    return lines([Items((*doubts(trace.manifest), *partial(trace)))])
