"""Who was in a slot: how long, what it did there, who was there before and after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import polars as pl

from stepscope.analyzers.findings.wording import times
from stepscope.app.palette import HELD, STATES, UNKNOWN
from stepscope.app.present.blocks import AtSpan, Block, Fact, Paragraph
from stepscope.app.present.where import when
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.timeline.lanes.slots import SLOTS
from stepscope.app.timeline.section_states import OF_SLOTS
from stepscope.app.units import duration
from stepscope.ingest.derive.slot_spans import old_tokens, slot_stays
from stepscope.ingest.trace import Trace

Row = dict[str, Any]
_STAYS: WeakKeyDictionary[Trace, pl.DataFrame] = WeakKeyDictionary()


def slot_blocks(span: SpanView, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    """What a slot's span is part of; nothing of a span elsewhere."""
    if timeline.lanes[span.lane].section != SLOTS:
        return
    if span.state == HELD:
        yield from _old_tokens(span, timeline, trace)
        return
    row = timeline.row(span.ref)
    slot = row.get("slot", row.get("id"))
    stays = _stays(trace).filter(pl.col("rank") == row["rank"], pl.col("slot") == slot).to_dicts()
    begun = [place for place, stay in enumerate(stays) if stay["from_ns"] <= span.start_ns]
    if not begun or stays[begun[-1]]["request"] != span.label:
        return
    at = begun[-1]
    yield Paragraph(_sentence(stays[at], span, timeline))
    if at:
        yield _neighbour("before it", stays[at - 1], span, timeline)
    if at + 1 < len(stays):
        yield _neighbour("after it", stays[at + 1], span, timeline)


def _sentence(stay: Row, span: SpanView, timeline: Timeline) -> str:
    until = timeline.bounds[1] if stay["to_ns"] is None else stay["to_ns"]
    lasted = duration(until - stay["from_ns"])
    ended = " and never left it" if stay["to_ns"] is None else ""
    own = timeline.sums(span.lane, stay["from_ns"], until)
    did = [f"{_word(state)} {duration(each.ns)}" for state, each in own.items() if each.ns]
    return f"{span.label} was in slot {stay['slot']} for {lasted}{ended}: {', '.join(did)}."


def _word(state: int) -> str:
    return "unknown" if state == UNKNOWN else OF_SLOTS.get(state, STATES[state].name)


def _neighbour(name: str, stay: Row, span: SpanView, timeline: Timeline) -> Fact:
    since = stay["from_ns"] - timeline.bounds[0]
    until = "" if stay["to_ns"] is None else f" to {when(stay['to_ns'], timeline, 1)}"
    text = f"{stay['request']}, {when(stay['from_ns'], timeline, 1)}{until}"
    return Fact(name, (text,), to=AtSpan(span.lane, since))


def _old_tokens(span: SpanView, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    rank, slot = timeline.lanes[span.lane].rank, timeline.row(span.ref)["slot"]
    own = old_tokens(trace).filter(
        pl.col("rank") == rank, pl.col("slot") == slot, pl.col("from_ns") <= span.start_ns
    )
    for row in own.tail(1).to_dicts():
        yield Paragraph(_left_over(row))


def _left_over(row: Row) -> str:
    whole = f"Slot {row['slot']} held {times(row['num_tokens'], 'token')}"
    if row["num_own"] is None:
        return f"{whole} of an earlier request while {row['request']} used it: it was not cleared."
    return (
        f"{whole} while {row['request']} used it, of which {row['num_own']:,} were its own: "
        "the others are left from an earlier request."
    )


def _stays(trace: Trace) -> pl.DataFrame:
    if trace not in _STAYS:
        _STAYS[trace] = slot_stays(trace).sort("rank", "slot", "from_ns", maintain_order=True)
    return _STAYS[trace]
