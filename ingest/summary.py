"""How a trace presents itself at a prompt and in a notebook: what is in it, what to doubt."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import polars as pl

from stepscope.ingest.schema import STEP_KINDS, TABLES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepscope.ingest.manifest import Manifest
    from stepscope.ingest.trace import Trace


def facts(trace: Trace) -> list[tuple[str, str]]:
    """Give what a person asks first: producer, clock, ranks, run and steps by kind."""
    manifest = trace.manifest
    run = " / ".join(part for part in (manifest.scenario, manifest.variant) if part)
    rows = [
        ("producer", f"{manifest.producer} {manifest.producer_version}".strip()),
        ("clock", manifest.clock.kind),
        ("ranks", _ranks(manifest)),
        ("sources", _sources(manifest)),
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


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of several requests: how many requests, the mean, the most, and all together."""

    requests: int
    mean: float
    most: int
    total: int


def lengths(trace: Trace) -> dict[str, Lengths | None]:
    """Give the tokens of prompts, of outputs as asked for at most, and of outputs that came.

    What came is counted in `outputs`, placeholders aside, or else is what `lifecycle` says that was
    generated, of requests that got a token. None is what was not recorded.
    """
    is_token = ~pl.col("is_placeholder").fill_null(value=False)
    came = trace.outputs.filter(is_token).group_by("rank", "request").agg(num_tokens=pl.len())
    if not trace.has("outputs"):
        told = trace.lifecycle.group_by("rank", "request").agg(pl.col("num_generated").max())
        came = told.select(num_tokens="num_generated").filter(pl.col("num_tokens") > 0)
    return {
        "prompts": _lengths(trace.lifecycle.select("prompt_len")),
        "asked": _lengths(trace.lifecycle.select("max_tokens")),
        "outputs": _lengths(came.select("num_tokens")),
    }


def _lengths(tokens: pl.LazyFrame) -> Lengths | None:
    of = tokens.collect().to_series().drop_nulls().cast(pl.Int64)
    if of.is_empty():
        return None
    total = int(of.sum())
    return Lengths(len(of), total / len(of), int(of.max() or 0), total)  # type: ignore[arg-type]


def table_rows(trace: Trace) -> list[tuple[str, int, str]]:
    """Give name, number of rows and completeness of every table that has a row."""
    said = trace.manifest.tables
    counted = ((table.name, trace.num_rows(table.name)) for table in TABLES)
    return [(name, rows, said.get(name, "")) for name, rows in counted if rows]


def extents(trace: Trace) -> dict[str, tuple[int, int]]:
    """Give when the first row of each table begins and the last one ends, where that is known."""
    found = pl.collect_all([_extent(trace.table(table.name)) for table in TABLES])
    pairs = ((table.name, frame.row(0)) for table, frame in zip(TABLES, found, strict=True))
    return {name: (first, last) for name, (first, last) in pairs if first is not None}


def _extent(rows: pl.LazyFrame) -> pl.LazyFrame:
    names = rows.collect_schema().names()
    ends = [pl.col(name).max() for name in ("end_ns", "retired_ns") if name in names]
    if "dur_ns" in names:
        ends.append((pl.col("ts_ns") + pl.col("dur_ns").fill_null(0)).max())
    first = pl.col("ts_ns").min()
    return rows.select(first=first, last=pl.max_horizontal(pl.col("ts_ns").max(), *ends))


def kinds(trace: Trace, table: str, column: str) -> dict[str, int]:
    """Count the rows of a table by what a column says, the most frequent first."""
    kind = pl.col(column).cast(pl.String).fill_null("unknown")
    counted = trace.table(table).group_by(kind).agg(pl.len()).sort(-pl.col("len").cast(int), column)
    return dict(counted.collect().iter_rows())


def sources(manifest: Manifest) -> dict[str, str]:
    """Give the file or the writer that each rank is from, where a trace is of several."""
    found = manifest.config.get("files") or manifest.config.get("sources")
    known = found if isinstance(found, dict) else {}
    return {rank: str(name) for rank, name in known.items() if rank.isdecimal()}


@dataclass(frozen=True, slots=True)
class Ring:
    """How full one thing that a ring holds became, and of how much; 0 where that is not said."""

    ring: str
    what: str
    unit: str
    samples: int
    most: float
    size: int


def rings(trace: Trace) -> list[Ring]:
    """Give what the rings of a core-group runtime held at most, of what they hold."""
    counted = (
        trace.counters.filter(pl.col("track").str.starts_with("ring "))
        .group_by("track", "name", maintain_order=True)
        .agg(pl.col("unit").first(), pl.len(), most=pl.col("value").max())
        .sort("track", maintain_order=True)
        .collect()
    )
    sizes = trace.manifest.config.get("rings")
    known = sizes if isinstance(sizes, dict) else {}
    return [
        Ring(ring, what, unit or "", samples, most, _size(known.get(what), ring))
        for ring, what, unit, samples, most in counted.iter_rows()
    ]


def _size(sizes: object, ring: str) -> int:
    number = ring.removeprefix("ring ")
    if not isinstance(sizes, list) or not number.isdigit() or int(number) >= len(sizes):
        return 0
    size = sizes[int(number)]
    return size if isinstance(size, int) else 0


def doubts(manifest: Manifest) -> list[str]:
    """Give one line for each thing to know: not closed, dropped, recovered, what readers note."""
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
    ended = [rank for rank in manifest.recovered or {} if rank not in live]
    lines = ["still recording: what was written so far is here"] if live else []
    if not manifest.closed and (ended or not live):
        lines.append("not closed: the recording ended before it was finished")
    lines += [f"rank {rank}: {_recovered(was)}" for rank, was in (manifest.recovered or {}).items()]
    lines += [f"dropped {rows:,} rows of {name}" for name, rows in manifest.dropped.items() if rows]
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


def _ranks(manifest: Manifest) -> str:
    ranks: Sequence[object] = merged_ranks(manifest) or manifest.ranks
    shown = ", ".join(map(str, ranks[:8])) + ", ..." * (len(ranks) > 8)
    if merged_ranks(manifest):
        return f"{len(ranks):,}, not told apart ({shown})"
    return f"{len(ranks):,} ({shown})" if len(ranks) > 8 else shown


def merged_ranks(manifest: Manifest) -> list[str]:
    """The ranks whose profiles were merged into one file, which is shown as one rank's."""
    said = manifest.config.get("merged_ranks")
    return [str(rank) for rank in said] if isinstance(said, list) else []


def _sources(manifest: Manifest) -> str:
    named = list(sources(manifest).items()) if len(manifest.ranks) > 1 else []
    shown = ", ".join(f"{rank} is {name}" for rank, name in named[:8])
    return f"{shown}, ..." if len(named) > 8 else shown


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
