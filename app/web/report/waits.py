"""What a report says of waits: why requests waited, as the pane beside the timeline says it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from stepscope.app.palette import FRONT_END, PREEMPTED, REASONS, WAITS
from stepscope.app.present.blocks import Block, Fact, Heading, Paragraph, Swatch, Table
from stepscope.app.present.inspected.span_wait import wait_blocks
from stepscope.app.timeline import SpanView
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.report.markup import LONGEST, colour_class
from stepscope.ingest.progress import Progress

MOST_WAITS = 120
"""Waits that a report explains, the longest first."""
MOST_LOOKED_AT = 50_000
"""Spans of requests that are looked at for these."""
STATES = (*WAITS, PREEMPTED, FRONT_END)
"""Spans of which there is a reason: between two steps that follow each other there is none."""


def waits(loaded: LoadedTrace, lanes: Sequence[int], progress: Progress) -> list[dict[str, Any]]:
    """The longest waits on `lanes`: which lane, from when to when, and the blocks about each."""
    found = [*dict.fromkeys(_waits(loaded, lanes))]
    found.sort(key=lambda span: span.start_ns - span.end_ns)
    shown = found[:MOST_WAITS]
    number = {lane: place for place, lane in enumerate(lanes)}
    told = []
    for done, span in enumerate(shown):
        progress("explaining waits", done, len(shown))
        blocks = [*_plain(wait_blocks(span, loaded.timeline, loaded.trace))]
        if blocks:
            told.append(
                {
                    "lane": number[span.lane],
                    "start": span.start_ns - loaded.origin,
                    "end": span.end_ns - loaded.origin,
                    "blocks": blocks,
                }
            )
    return told


def _waits(loaded: LoadedTrace, lanes: Sequence[int]) -> Iterator[SpanView]:
    timeline, left = loaded.timeline, MOST_LOOKED_AT
    for lane in lanes:
        if timeline.lanes[lane].section != "requests" or left <= 0:
            continue
        spans = timeline.spans(lane, *timeline.bounds, left)
        left -= len(spans)
        for span in spans:
            if span.state in STATES:
                whole = timeline.whole(span)
                is_part = span.state in WAITS
                # Whatever part of a wait it was found by, it is the same wait.
                yield whole._replace(state=REASONS[0], label="") if is_part else whole


def _plain(blocks: Iterable[Block]) -> Iterator[list[Any]]:
    """Blocks as the report's script writes them; links lead nowhere in a report."""
    for block in blocks:
        match block:
            case Heading(text, note):
                yield ["h4", _cut(f"{text} {note}".rstrip())]
            case Paragraph(text, _):
                yield ["p", _cut(text)]
            case Fact():
                yield ["fact", _cut(block.label), _cut(block.values[0])]
            case Table():
                rows = [[_cell(cell) for cell in row] for row in block.rows]
                more = f"and {block.num_more:,} more" if block.num_more else ""
                yield ["table", _cut(block.title), [*block.columns], rows, more]
            case _:
                pass


def _cell(value: object) -> object:
    if isinstance(value, Swatch):
        return {"kind": f"swatch {value.cue} {colour_class(value.colour)}"}
    return "—" if value is None else f"{value:,}" if isinstance(value, int) else _cut(str(value))


def _cut(text: str) -> str:
    return f"{text[:LONGEST]}…" if len(text) > LONGEST else text
