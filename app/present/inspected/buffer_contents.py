"""What the side pane says of a segment and of a buffer: writers, readers and overwrites.

What is estimated is called an estimate: the time of a step that is divided by tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from stepscope.app.palette import OVERWRITTEN
from stepscope.app.present.blocks import Block, Fact, Heading, Paragraph, Tone
from stepscope.app.present.where import when
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.timeline.lanes.buffers import contents_of
from stepscope.app.units import count, duration
from stepscope.ingest.derive.access_order import SYNCHRONISES
from stepscope.ingest.derive.segments import AT_ONCE, BY_TOKENS, IN_EQUAL_PARTS, division_of
from stepscope.ingest.trace import Trace

MOST_READS = 8
DIVISIONS = {
    BY_TOKENS: "Estimated, not measured: the trace has no times of its own for the segments of "
    "this step, so the step's time is divided by their tokens.",
    IN_EQUAL_PARTS: "Estimated, not measured: the trace has neither times nor tokens for the "
    "segments of this step, so the step's time is divided into equal parts.",
    AT_ONCE: "The halves of this batch overlap; how long each took is not recorded, so both are "
    "drawn as long as the step.",
}
Row = Mapping[str, Any]


def step_of_row(span: SpanView, timeline: Timeline) -> int | None:
    """The step of a segment or an access, where its rank's steps are those that are walked."""
    if span.ref[0] not in ("segments", "accesses"):
        return None
    row = timeline.row(span.ref)
    step: int | None = row["step"]
    return step if row["rank"] == timeline.walked_rank else None


def segment_blocks(span: SpanView, trace: Trace) -> Iterator[Block]:
    """How the times of a segment are known, where they were not recorded."""
    table, number = span.ref
    if table != "segments":
        return
    key = trace.segments.select("rank", "step").slice(number, 1).collect().row(0)
    if None not in key and (division := division_of(trace, *key)):
        yield Paragraph(DIVISIONS[division], Tone.MUTED)


def access_blocks(span: SpanView, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    """Who wrote the contents of a buffer, who read them when, and which write went over them.

    For an event that orders streams: who records it and who waits for it.
    """
    table, number = span.ref
    if table != "accesses":
        return
    row = timeline.row(span.ref)
    if row["op"] in SYNCHRONISES:
        yield from _event(row, timeline, trace)
        return
    derived = contents_of(trace)
    is_of_read = pl.col("ref") == number
    read = derived.reads.filter(is_of_read)
    write_ref = number if row["op"] == "write" else (read["write_ref"][0] if len(read) else None)
    of_contents = pl.col("write_ref") == write_ref if write_ref is not None else is_of_read
    reads = derived.reads.filter(of_contents).sort("ref")
    lost = reads.drop_nulls("overwrite_ref")
    # Before everything else: what went wrong with what is selected.
    of_span = lost if row["op"] == "write" else lost.filter(is_of_read)
    over_others = derived.reads.filter(pl.col("overwrite_ref") == number)
    refs = {number, write_ref, *reads["ref"], *lost["overwrite_ref"]}
    refs |= {*over_others["ref"].head(1), *over_others["write_ref"].head(1)}
    rows = _rows(refs - {None}, trace)
    if len(of_span):
        yield from _overwritten(rows, of_span.row(0, named=True))
    elif len(over_others) and span.state == OVERWRITTEN:
        yield from _overwritten(rows, over_others.row(0, named=True))
    yield Heading("contents", str(row["buffer"] or ""))
    write = None if write_ref is None else rows.get(write_ref)
    yield Fact("written by", (_who(write, timeline, "not recorded"),))
    for ref in reads["ref"].head(MOST_READS):
        yield Fact("read by", (_who(rows[ref], timeline),))
    if len(reads) > MOST_READS:
        yield Paragraph(f"and {count(len(reads) - MOST_READS)} more reads", Tone.MUTED)
    if not len(reads):
        yield Fact("read by", ("nobody, as far as it is recorded",))
    for ref in lost["overwrite_ref"].unique(maintain_order=True).head(MOST_READS):
        yield Fact("overwritten by", (_who(rows[ref], timeline),))


def _overwritten(rows: Mapping[int, Row], late: Row) -> Iterator[Block]:
    """In a sentence: which write went over what before which read."""
    read, over = rows[late["ref"]], rows[late["overwrite_ref"]]
    apart = duration(abs(over["ts_ns"] - read["ts_ns"]))
    if over["ts_ns"] >= read["ts_ns"]:
        yield Paragraph(
            f"Overwritten while {read['stream']} may still have been reading: {over['stream']} "
            f"wrote{_for(over)}, {apart} after the {read['op']}{_for(read)} was issued, and waited "
            "for nothing that comes after it.",
            Tone.ERROR,
        )
    else:
        yield Paragraph(
            f"Overwritten before it was read: {over['stream']} wrote{_for(over)}, and {apart} "
            f"later {read['stream']} read{_for(read)} and found that.",
            Tone.ERROR,
        )


def _for(row: Row) -> str:
    return "" if row["segment"] is None else f" for segment {row['segment']}"


def _who(row: Row | None, timeline: Timeline, otherwise: str = "") -> str:
    """Who did something, for which segment, which epoch it was, and when."""
    if row is None:
        return otherwise
    epoch = "" if row["epoch"] is None else f", epoch {row['epoch']}"
    at = when(row["ts_ns"], timeline, 1)
    return f"{row['stream'] or 'an unknown stream'}{_for(row)}{epoch}, at {at}"


def _event(row: Row, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    """Who records an event, and who waits for it."""
    if row["event"] is None:
        return
    of_event = (pl.col("rank") == row["rank"]) & (pl.col("event") == row["event"])
    synchronises = pl.col("op").is_in(SYNCHRONISES)
    rows = trace.accesses.filter(of_event, synchronises).sort("ts_ns").head(2 * MOST_READS)
    yield Heading("event", row["event"])
    for each in rows.collect().iter_rows(named=True):
        label = "recorded by" if each["op"] == "record" else "waited for by"
        yield Fact(label, (_who(each, timeline),))


def _rows(refs: set[Any], trace: Trace) -> dict[int, Row]:
    rows = trace.accesses.with_row_index("ref").filter(pl.col("ref").is_in(sorted(refs))).collect()
    return {row["ref"]: row for row in rows.iter_rows(named=True)}
