"""A KV block over a span of its lane: who owned it, since when, who shared it, who had it next."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analyzers.findings.wording import times
from stepscope.app.palette import CACHED
from stepscope.app.present.blocks import (
    AtRequest,
    AtSpan,
    Block,
    Fact,
    Link,
    Links,
    Paragraph,
    Table,
    Target,
)
from stepscope.app.present.where import when
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.units import count, duration
from stepscope.ingest.derive.kv_blocks import block_holds
from stepscope.ingest.trace import Trace

MOST_SHARERS = 16


def ownership_blocks(span: SpanView, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    """What is known of an ownership of a KV block; nothing of spans of other tables."""
    if span.ref[0] != "allocations":
        return
    row = timeline.row(span.ref)
    rank, block = row["rank"], row["id"]
    every = block_holds(trace, rank, block)
    until = pl.col("to_ns").fill_null(timeline.bounds[1])
    during = every.filter(pl.col("from_ns") < span.end_ns, until > span.start_ns)
    if span.state == CACHED:
        yield from _cached(span, timeline, every, row)
        return
    owner = row["owner"] or "no known owner"
    is_open = during.filter(pl.col("ref") == span.ref[1])["to_ns"].null_count() > 0
    end = "still has it at the end of the trace" if is_open else "gave it back"
    lasted = duration(span.end_ns - span.start_ns)
    yield Paragraph(f"{owner} owned KV block {block} for {lasted} and {end}.")
    held = every.filter(pl.col("ref") == span.ref[1])
    since = int(held["from_ns"][0]) if len(held) else span.start_ns
    how = {"claim": "claimed", "share": "shared from the prefix cache", "move": "moved to"}
    step = "" if row["step"] is None else f", step {count(row['step'])}"
    yield Fact("owner", (owner,))
    yield Fact("since", (f"{when(since, timeline, 1)}{step}, {how.get(row['op'], row['op'])}",))
    generation = row["generation"]
    yield Fact("generation", ("not recorded" if generation is None else count(generation),))
    if row["group"] is not None:
        yield Fact("KV cache group", (str(row["group"]),))
    yield from _sharers(during.filter(pl.col("ref") != span.ref[1]), rank, timeline)
    if row["owner"] is not None and timeline.lane_of_request(rank, row["owner"]) is not None:
        yield Links((Link("its owner", AtRequest(rank, row["owner"])),))


def _sharers(others: pl.DataFrame, rank: int, timeline: Timeline) -> Iterator[Block]:
    """Who else held the block in the meantime."""
    if others.is_empty():
        yield Fact("shared by", ("no other request",))
        return
    rows, leads = [], list[Target | None]()
    for owner, _, from_ns, to_ns in others.head(MOST_SHARERS).iter_rows():
        until = "the end" if to_ns is None else when(to_ns, timeline, 1)
        rows.append((owner or "no known owner", when(from_ns, timeline, 1), until))
        lane = None if owner is None else timeline.lane_of_request(rank, owner)
        leads.append(None if lane is None else AtSpan(lane, from_ns - timeline.bounds[0]))
    num = others["owner"].n_unique()
    yield Table(
        ("request", "from", "until"), tuple(rows), f"shared by {times(num, 'other request')}",
        num_more=max(len(others) - MOST_SHARERS, 0), leads=tuple(leads),
    )  # fmt: skip


def _cached(
    span: SpanView, timeline: Timeline, every: pl.DataFrame, row: dict[str, object]
) -> Iterator[Block]:
    """A block that no one holds, whose contents the prefix cache still finds."""
    yield Paragraph(
        f"No request owns KV block {row['id']}; the prefix cache can still find its contents."
    )
    before = every.filter(pl.col("to_ns") <= span.start_ns).sort("to_ns").tail(1)
    if len(before):
        owner, ended = before["owner"][0], when(int(before["to_ns"][0]), timeline, 1)
        yield Fact("last owner", (f"{owner or 'not known'}, until {ended}",))
    yield Fact("cached at", (when(row["ts_ns"], timeline, 1),))  # type: ignore[arg-type]
    if row["block_hash"] is not None:
        yield Fact("hash", (str(row["block_hash"]),))
