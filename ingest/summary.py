"""How a trace presents itself at a prompt and in a notebook: what is in it, what to doubt."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import polars as pl

from stepscope.ingest.schema import STEP_KINDS, TABLES

if TYPE_CHECKING:
    from stepscope.ingest.manifest import Manifest
    from stepscope.ingest.trace import Trace


def facts(trace: Trace) -> list[tuple[str, str]]:
    """Give what a person asks first: producer, clock, ranks, run and steps by kind."""
    manifest = trace.manifest
    run = " / ".join(part for part in (manifest.scenario, manifest.variant) if part)
    rows = [
        ("producer", f"{manifest.producer} {manifest.producer_version}".strip()),
        ("clock", manifest.clock.kind),
        ("ranks", _ranks(manifest.ranks)),
        ("run", run),
        ("steps", _steps(trace)),
    ]
    return [(name, text) for name, text in rows if text]


def steps_by_kind(trace: Trace) -> dict[str, int]:
    """Give the number of steps of each kind, in the schema's order; null is `unknown`."""
    kind = pl.col("kind").fill_null("unknown")
    counted = dict(trace.steps.group_by(kind).agg(pl.len()).collect().iter_rows())
    order = [name for name in STEP_KINDS if name in counted]
    return {name: counted[name] for name in order + sorted(set(counted) - set(order))}


def table_rows(trace: Trace) -> list[tuple[str, int, str]]:
    """Give name, number of rows and completeness of every table that has a row."""
    said = trace.manifest.tables
    counted = ((table.name, trace.num_rows(table.name)) for table in TABLES)
    return [(name, rows, said.get(name, "")) for name, rows in counted if rows]


def notes(manifest: Manifest) -> list[str]:
    """Give one line for each thing to doubt: not closed, dropped, recovered, repaired, inferred."""
    lines = [] if manifest.closed else ["not closed: the recording ended before it was finished"]
    lines += [f"rank {rank}: {_recovered(was)}" for rank, was in (manifest.recovered or {}).items()]
    lines += [f"dropped {rows:,} rows of {name}" for name, rows in manifest.dropped.items() if rows]
    if manifest.report:
        for word in ("skipped", "repaired", "inferred"):
            counts: dict[str, int] = getattr(manifest.report, word)
            lines += [f"{word} {number:,}: {what}" for what, number in counts.items() if number]
        lines += manifest.report.notes
    return lines


def as_text(trace: Trace) -> str:
    """Give a few lines of plain text, safe for a terminal."""
    lines = [f"Trace {trace.name}"]
    lines += [f"  {name:<10} {text}" for name, text in facts(trace)]
    lines += [f"  {name:<12} {rows:>12,} rows  {state}" for name, rows, state in table_rows(trace)]
    lines += [f"  ! {note}" for note in notes(trace.manifest)]
    return "\n".join(_printable(line).rstrip() for line in lines)


def as_html(trace: Trace) -> str:
    """Give a small HTML table; every text of the trace is escaped."""
    about = "".join(
        f"<div><b>{escape(name)}</b> {escape(text)}</div>" for name, text in facts(trace)
    )
    body = "".join(
        f"<tr><td>{escape(name)}</td><td style='text-align:right'>{rows:,}</td>"
        f"<td>{escape(state)}</td></tr>"
        for name, rows, state in table_rows(trace)
    )
    doubts = "".join(f"<li>{escape(note)}</li>" for note in notes(trace.manifest))
    return (
        f"<div class='stepscope-trace'><h4>{escape(trace.name)}</h4>{about}"
        f"<table><thead><tr><th>table</th><th>rows</th><th></th></tr></thead>"
        f"<tbody>{body}</tbody></table>" + (f"<ul>{doubts}</ul>" if doubts else "") + "</div>"
    )


def _ranks(ranks: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, ranks[:8]))
    return f"{len(ranks):,} ({shown}, ...)" if len(ranks) > 8 else shown


def _steps(trace: Trace) -> str:
    kinds = steps_by_kind(trace)
    by_kind = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    return f"{sum(kinds.values()):,}: {by_kind}" if kinds else ""


def _recovered(was: object) -> str:
    if not isinstance(was, dict):
        return "recovered"
    rows = was.get("rows")
    num_rows = sum(n for n in rows.values() if isinstance(n, int)) if isinstance(rows, dict) else 0
    extra = "".join(f"; {note}" for note in was.get("notes") or ())
    return f"recovered {num_rows:,} rows, discarded {was.get('discarded_bytes', 0)} bytes{extra}"


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else "�" for char in line)
