"""How a trace presents itself at a prompt and in a notebook: what is in it, what to doubt.

What is shown is given in parts, so that the trace can show itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import polars as pl

from stepscope.ingest.manifest import NOT_FOUND, Manifest
from stepscope.ingest.schema import STEP_KINDS


def facts(manifest: Manifest, steps: pl.LazyFrame) -> list[tuple[str, str]]:
    """Give what a person asks first: producer, clock, ranks, run and steps by kind."""
    run = " / ".join(part for part in (manifest.scenario, manifest.variant) if part)
    rows = [
        ("producer", f"{manifest.producer} {manifest.producer_version}".strip()),
        ("clock", manifest.clock.kind),
        ("ranks", _ranks(manifest)),
        ("sources", _sources(manifest)),
        ("run", run),
        ("steps", _steps(steps)),
    ]
    return [(name, text) for name, text in rows if text]


def steps_by_kind(steps: pl.LazyFrame) -> dict[str, int]:
    """Give the number of steps of each kind, in the schema's order; null is `unknown`."""
    kind = pl.col("kind").fill_null("unknown")
    counted = dict(steps.group_by(kind).agg(pl.len()).collect().iter_rows())
    order = [name for name in STEP_KINDS if name in counted]
    return {name: counted[name] for name in order + sorted(set(counted) - set(order))}


def table_rows(manifest: Manifest, num_rows: Mapping[str, int]) -> list[tuple[str, int, str]]:
    """Give name, number of rows and completeness of every table that has a row."""
    return [(name, rows, manifest.tables.get(name, "")) for name, rows in num_rows.items() if rows]


def sources(manifest: Manifest) -> dict[str, str]:
    """Give the file or the writer that each rank is from, where a trace is of several."""
    found = manifest.config.get("files") or manifest.config.get("sources")
    known = found if isinstance(found, dict) else {}
    return {rank: str(name) for rank, name in known.items() if rank.isdecimal()}


def doubts(manifest: Manifest) -> list[str]:
    """Give one line for each thing to know: not closed, lost, not found, what readers note."""
    return [*_lost(manifest), *(manifest.report.notes if manifest.report else ())]


def notes(manifest: Manifest) -> list[str]:
    """Give one line for each thing to doubt: those, and what was skipped, repaired, inferred."""
    report = manifest.report
    counted = [
        f"{word} {number:,}: {what}"
        for word in ("skipped", "repaired", "inferred")
        for what, number in (getattr(report, word).items() if report else ())
        if number
    ]
    return [*_lost(manifest), *counted, *(report.notes if report else ())]


def _lost(manifest: Manifest) -> list[str]:
    live = manifest.live_ranks
    recovered = manifest.recovered or {}
    damaged = [rank for rank, was in recovered.items() if is_damaged(was)]
    ended = [rank for rank in recovered if rank not in live and rank not in damaged]
    lines = ["still recording: what was written so far is here"] if live else []
    if not manifest.closed and (ended or not (live or damaged)):
        lines.append("not closed: the recording ended before it was finished")
    if damaged:
        lines.append("damaged: files of the recording cannot be read, or not to their end")
    lines += [
        f"rank {rank}: {_recovered(was)}"
        for rank, was in (manifest.recovered or {}).items()
        if rank not in live or _has_rows(was)  # what is followed counts them itself
    ]
    lines += [f"dropped {rows:,} rows of {name}" for name, rows in manifest.dropped.items() if rows]
    return [*lines, *_not_found(manifest)]


def _not_found(manifest: Manifest) -> list[str]:
    """What an adapter could not follow, as this version of the engine has no such function."""
    found = manifest.config.get(NOT_FOUND)
    names = ", ".join(map(str, found)) if isinstance(found, list) else ""
    return [f"not recorded: the engine has no {names}"] if names else []


def as_text(name: str, manifest: Manifest, steps: pl.LazyFrame, num_rows: Mapping[str, int]) -> str:
    """Give a few lines of plain text, safe for a terminal."""
    lines = [f"Trace {name}"]
    lines += [f"  {fact:<10} {text}" for fact, text in facts(manifest, steps)]
    told = table_rows(manifest, num_rows)
    lines += [f"  {table:<12} {rows:>12,} rows  {state}" for table, rows, state in told]
    lines += [f"  ! {note}" for note in notes(manifest)]
    return "\n".join(_printable(line).rstrip() for line in lines)


def as_html(name: str, manifest: Manifest, steps: pl.LazyFrame, num_rows: Mapping[str, int]) -> str:
    """Give a small HTML table; every text of the trace is escaped."""
    about = "".join(
        f"<div><b>{escape(fact)}</b> {escape(text)}</div>" for fact, text in facts(manifest, steps)
    )
    body = "".join(
        f"<tr><td>{escape(table)}</td><td style='text-align:right'>{rows:,}</td>"
        f"<td>{escape(state)}</td></tr>"
        for table, rows, state in table_rows(manifest, num_rows)
    )
    doubts = "".join(f"<li>{escape(note)}</li>" for note in notes(manifest))
    return (
        f"<div class='stepscope-trace'><h4>{escape(name)}</h4>{about}"
        f"<table><thead><tr><th>table</th><th>rows</th><th></th></tr></thead>"
        f"<tbody>{body}</tbody></table>" + (f"<ul>{doubts}</ul>" if doubts else "") + "</div>"
    )


def _ranks(manifest: Manifest) -> str:
    ranks = manifest.ranks
    shown = ", ".join(map(str, ranks[:8])) + ", ..." * (len(ranks) > 8)
    return f"{len(ranks):,} ({shown})" if len(ranks) > 8 else shown


def _sources(manifest: Manifest) -> str:
    named = list(sources(manifest).items()) if len(manifest.ranks) > 1 else []
    shown = ", ".join(f"{rank} is {name}" for rank, name in named[:8])
    return f"{shown}, ..." if len(named) > 8 else shown


def _steps(steps: pl.LazyFrame) -> str:
    kinds = steps_by_kind(steps)
    by_kind = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    return f"{sum(kinds.values()):,}: {by_kind}" if kinds else ""


def _has_rows(was: object) -> bool:
    return isinstance(was, dict) and bool(was.get("rows"))


def is_damaged(was: object) -> bool:
    """Whether other files than a journal are damaged, by what a manifest says was recovered."""
    return isinstance(was, dict) and was.get("damaged") is True


def _recovered(was: object) -> str:
    if not isinstance(was, dict):
        return "recovered"
    rows = was.get("rows")
    num_rows = sum(n for n in rows.values() if isinstance(n, int)) if isinstance(rows, dict) else 0
    notes = was.get("notes")
    texts = [str(note) for note in notes] if isinstance(notes, list) else []
    counts = f"recovered {num_rows:,} rows, discarded {was.get('discarded_bytes', 0)} bytes"
    return "; ".join(texts if is_damaged(was) and not num_rows else [counts, *texts])


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else "�" for char in line)
