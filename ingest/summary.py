"""What a trace says of its requests, rings and times, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace


@dataclass(frozen=True, slots=True)
class Lengths:
    """Tokens of several requests: how many requests, the mean, the most, and all together."""

    requests: int
    mean: float
    most: int
    total: int


def lengths(trace: Trace) -> dict[str, Lengths | None]:
    """Give the tokens of prompts, of outputs as asked for at most, and of outputs that came.

    What came is what `tokens_came` counts. Prompts are those of `lifecycle`, else of batches. None
    is what was not recorded.
    """
    return {
        "prompts": _lengths(_of_requests(trace, "prompt_len")) or _lengths(_in_batches(trace)),
        "asked": _lengths(_of_requests(trace, "max_tokens")),
        "outputs": _lengths(tokens_came(trace).select("num_tokens")),
    }


def _of_requests(trace: Trace, column: str) -> pl.LazyFrame:
    """What the events of each request state in a column: once for a request, however many do."""
    is_named, value = pl.col("request").is_not_null(), pl.col(column)
    named = trace.lifecycle.filter(is_named).group_by("rank", "request").agg(value.max())
    return pl.concat([named.select(column), trace.lifecycle.filter(~is_named).select(column)])


def _in_batches(trace: Trace) -> pl.LazyFrame:
    """The tokens of each prompt as batches state them; nothing where a request is in none."""
    is_named, who = pl.col("request").is_not_null(), ["rank", "request"]
    longest = trace.batch_rows.filter(is_named).group_by(who).agg(pl.col("prompt_len").max())
    others = trace.lifecycle.filter(is_named).join(longest, on=who, how="anti")
    is_whole = others.head(1).collect().is_empty()
    return longest.select("prompt_len") if is_whole else longest.select("prompt_len").head(0)


def tokens_came(trace: Trace) -> pl.LazyFrame:
    """How many tokens each request was given: rank, request, num_tokens.

    They are counted in `outputs`, placeholders aside, or else are what `lifecycle` says that was
    generated, of requests that got a token.
    """
    is_token = ~pl.col("is_placeholder").fill_null(value=False) & pl.col("request").is_not_null()
    came = trace.outputs.filter(is_token).group_by("rank", "request").agg(num_tokens=pl.len())
    if not trace.has("outputs"):
        told = trace.lifecycle.group_by("rank", "request").agg(pl.col("num_generated").max())
        of = pl.col("num_generated").alias("num_tokens")
        return told.select("rank", "request", of).filter(pl.col("num_tokens") > 0)
    return came


def _lengths(tokens: pl.LazyFrame) -> Lengths | None:
    of = tokens.collect().to_series().drop_nulls().cast(pl.Int64)
    if of.is_empty():
        return None
    total = int(of.sum())
    return Lengths(len(of), total / len(of), int(of.max() or 0), total)  # type: ignore[arg-type]  # of whole numbers


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
