"""`stepscope info`: what a trace holds, and what could not be had from its source."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.app.cli.progress import progress
from stepscope.app.cli.tables import format_table
from stepscope.app.plain import plain

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(("text", "json")), default="text",
              show_default=True, help="How to print it.")  # fmt: skip
def info(trace: Path, form: str) -> None:
    """Show what is in TRACE: producer, ranks, tables and rows, steps by kind.

    Says by count what was read, skipped, repaired, inferred, dropped or recovered.
    """
    from stepscope.ingest.trace import Trace

    with progress() as report:
        opened = Trace.open(trace, progress=report)
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
    from stepscope.ingest.summary import facts, notes, table_rows

    lines = [f"{name:<10} {plain(text)}" for name, text in [("trace", trace.name), *facts(trace)]]
    rows = [(name, rows, state or "complete") for name, rows, state in table_rows(trace)]
    lines += ["", *(format_table(("table", "rows", "state"), rows) if rows else ["no rows"])]
    read = trace.manifest.report.read if trace.manifest.report else {}
    remarks = [f"read {count:,}: {what}" for what, count in read.items()] + notes(trace.manifest)
    return "\n".join([*lines, *([""] if remarks else []), *map(plain, remarks)])
