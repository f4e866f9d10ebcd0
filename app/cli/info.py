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
    from stepscope.ingest.manifest import Manifest
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
        facts = collect(Trace.open(trace, progress=report))
    click.echo(json.dumps(facts, indent=2) if form == "json" else "\n".join(_lines(facts)))


def collect(trace: Trace) -> dict[str, Any]:
    """Return every fact that `info` shows, as plain values."""
    return {
        "trace": trace.name,
        **_manifest_facts(trace.manifest),
        "tables": {name: rows for name, rows in _row_counts(trace).items() if rows},
        "steps": _step_kinds(trace),
    }


def _manifest_facts(manifest: Manifest) -> dict[str, Any]:
    facts = asdict(manifest)
    for name in ("workload", "tables", "format_version"):
        facts.pop(name, None)
    facts["ranks"] = list(manifest.ranks)
    facts["table_states"] = dict(manifest.tables)
    return facts


def _row_counts(trace: Trace) -> dict[str, int]:
    import polars as pl

    from stepscope.ingest.schema import TABLES

    frames = [trace.table(table.name).select(pl.len()) for table in TABLES]
    counts = pl.collect_all(frames)
    return {table.name: count.item() for table, count in zip(TABLES, counts, strict=True)}


def _step_kinds(trace: Trace) -> dict[str, int]:
    import polars as pl

    kinds = trace.steps.group_by("kind").agg(pl.len()).sort("len", descending=True).collect()
    return {kind or "unknown": count for kind, count in kinds.iter_rows()}


def _lines(facts: dict[str, Any]) -> list[str]:
    clock = facts["clock"]
    fields = [
        ("trace", facts["trace"]),
        ("producer", " ".join(filter(None, (facts["producer"], facts["producer_version"])))),
        ("scenario", " · ".join(filter(None, (facts["scenario"], facts["variant"])))),
        ("clock", clock["kind"]),
        ("ranks", ", ".join(map(str, facts["ranks"]))),
        ("steps", _counted(facts["steps"])),
        ("closed", "yes" if facts["closed"] else "no: recovered from an unclosed recording"),
        ("dropped", _counted(facts["dropped"])),
        ("recovered", _flat(facts["recovered"])),
    ]
    lines = [f"{name:<10} {plain(str(value))}" for name, value in fields if value]
    lines += ["", *_table_lines(facts)]
    return lines + _report_lines(facts["report"] or {})


def _table_lines(facts: dict[str, Any]) -> list[str]:
    states = facts["table_states"]
    rows = [(name, rows, states.get(name, "complete")) for name, rows in facts["tables"].items()]
    return format_table(("table", "rows", "state"), rows) if rows else ["no rows in any table"]


def _report_lines(report: dict[str, Any]) -> list[str]:
    lines = [
        f"{name:<10} {plain(_counted(report[name]))}"
        for name in ("read", "skipped", "repaired", "inferred")
        if report.get(name)
    ]
    lines += [f"{'note':<10} {plain(note)}" for note in report.get("notes", ())]
    return ["", *lines] if lines else []


def _counted(counts: dict[str, int]) -> str:
    total = sum(counts.values())
    parts = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    return f"{total:,} ({parts})" if len(counts) > 1 else parts


def _flat(facts: dict[str, Any] | None) -> str:
    return json.dumps(facts) if facts else ""
