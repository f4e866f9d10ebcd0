"""`stepscope info`: what a trace holds, and what could not be had from its source."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress
from stepscope.app.cli.tables import format_table
from stepscope.app.plain import plain

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text",
              show_default=True, help="How to print it.")  # fmt: skip
@opens_traces
def info(trace: Path, form: str, open_trace: OpenTrace) -> None:
    """Show what is in TRACE: producer, ranks, tables and rows, steps by kind.

    Says by count what was read, skipped, repaired, inferred, dropped or recovered.
    """
    with progress() as report:
        opened = open_trace(trace, report)
        text = json.dumps(as_dict(opened), indent=2) if form == "json" else as_text(opened)
    click.echo(text)


def as_dict(trace: Trace) -> dict[str, Any]:
    """Return what a program wants to know: the manifest, the steps of each kind, rows a table."""
    from stepscope.ingest.summary import steps_by_kind, table_rows

    manifest = asdict(trace.manifest)
    del manifest["tables"]
    return {
        "trace": trace.name,
        **manifest,
        "steps": steps_by_kind(trace),
        "tables": {
            name: {"rows": rows, "state": state or "complete"}
            for name, rows, state in table_rows(trace)
        },
    }


def as_text(trace: Trace) -> str:
    """Return what a person wants to know, safe for a terminal."""
    from stepscope.ingest.summary import facts

    about = [f"{name:<10} {plain(text)}" for name, text in [("trace", trace.name), *facts(trace)]]
    parts = [about, _table_lines(trace), _step_lines(trace), _remarks(trace)]
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _table_lines(trace: Trace) -> list[str]:
    from stepscope.ingest.summary import table_rows

    rows = [(name, rows, state or "complete") for name, rows, state in table_rows(trace)]
    return format_table(("table", "rows", "state"), rows) if rows else ["no rows"]


def _step_lines(trace: Trace) -> list[str]:
    """Say what the steps of each kind held in all: a trace of one step shows that step."""
    import polars as pl

    sums = ("num_prefill_reqs", "num_prefill_tokens", "num_decode_reqs", "num_decode_tokens")
    held = trace.steps.group_by(pl.col("kind").fill_null("unknown")).agg(
        pl.len(), pl.col(sums).sum(), pl.col("dur_ns").sum() / 1e6
    )
    rows = held.sort("len", descending=True).collect().rows()
    header = ("steps of", "steps", "prefill rows", "tokens", "decode rows", "tokens", "ms")
    return format_table(header, rows) if rows else []


def _remarks(trace: Trace) -> list[str]:
    from stepscope.ingest.summary import notes

    read = trace.manifest.report.read if trace.manifest.report else {}
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in read.items())
    lines = [f"read {sum(read.values()):,} events: {kinds}"] if read else []
    return [plain(line) for line in lines + notes(trace.manifest)]
