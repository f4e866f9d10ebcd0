"""What the details pane says: what, evidence, why, state before and after, how to fix."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from stepscope.analyzers.finding import Finding
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.timeline.palette import SEVERITY_MARKS, STATES
from stepscope.app.tui.bar import Piece
from stepscope.app.tui.ink import MUTED, PANEL, TEXT, ink
from stepscope.app.tui.places import lane_name, place, when
from stepscope.app.tui.prose import Block, Fact, Heading, Links, Painted, Paragraph, Title
from stepscope.app.tui.units import count, duration, quantity
from stepscope.app.tui.view_state import Selection
from stepscope.ingest.trace import Trace

MAX_REASONS = 2
MAX_COLUMNS = 40


def describe(selection: Selection, timeline: Timeline, trace: Trace) -> list[Block]:
    """Blocks for what is selected; how to select something when nothing is.

    Looks rows up in the trace, so call it from a thread.
    """
    if selection.mark:
        return list(range_blocks(*selection.mark, selection.section, timeline))
    if selection.finding:
        return list(finding_blocks(selection.finding, timeline, trace))
    if selection.span:
        return list(span_blocks(selection.span, timeline))
    return list(_nothing())


def finding_blocks(found: Finding, timeline: Timeline, trace: Trace) -> Iterator[Block]:
    """Everything about a finding, in the order in which it is asked."""
    mark = SEVERITY_MARKS[found.severity]
    yield Title(f"{mark.glyph} {found.code} {found.name}", mark.colour)
    yield Paragraph(found.message)
    yield Paragraph(" · ".join(_where(found, timeline)), MUTED)
    known = {name: value for name, value in found.evidence.items() if value is not None}
    if known:
        yield Heading("evidence")
    for name, value in known.items():
        label, shown = quantity(name, value)
        yield Fact(label, (shown,))
    yield from _why(found, trace)
    yield from _before_and_after(found, timeline)
    yield Heading("how to fix")
    yield Paragraph(found.fix)
    yield Links(((f"explain {found.code}", f"app.explain('{found.code}')"),))


def _where(found: Finding, timeline: Timeline) -> Iterator[str]:
    where = place(found, timeline)
    yield where
    if found.rank:
        yield f"rank {found.rank}"
    step = f"step {count(found.step)}" if found.step is not None else where
    if step != where:
        yield step
    if found.ts_ns is not None:
        lasted = found.end_ns - found.ts_ns if found.end_ns is not None else 0
        length = f" for {duration(lasted)}" if lasted > 0 else ""
        yield when(found.ts_ns, timeline) + length
    if found.count > 1:
        yield f"{count(found.count)} times, this is the worst or the first"


def _why(found: Finding, trace: Trace) -> Iterator[Block]:
    reasons = recorded_reasons(found, trace)
    if not reasons:
        return
    yield Heading("why, as recorded")
    for row in reasons:
        yield Paragraph(f"· {_reason(row)}")


def recorded_reasons(found: Finding, trace: Trace) -> list[dict[str, Any]]:
    """The last decisions about a finding's request or task up to its time, the last one first."""
    subjects = [each for each in (found.request, found.task) if each is not None]
    if not subjects or not trace.has("decisions"):
        return []
    about = pl.col("subject").is_in([str(subject) for subject in subjects])
    in_time = pl.lit(True) if found.ts_ns is None else pl.col("ts_ns") <= found.ts_ns
    rows = trace.decisions.filter(about & in_time).sort("ts_ns", maintain_order=True)
    return rows.tail(MAX_REASONS).reverse().collect().to_dicts()


def _reason(row: dict[str, Any]) -> str:
    """A decision in a line: `passed-over: no free slot, needs 1, 0 free, held by 17`."""
    parts = [row["reason"] or ""]
    if row["needed"] is not None:
        available = f", {count(row['available'])} available" if row["available"] is not None else ""
        parts.append(f"{row['resource'] or ''} needs {count(row['needed'])}".lstrip() + available)
    if row["holder"]:
        parts.append(f"held by {row['holder']}")
    if row["instead"]:
        parts.append(f"{row['instead']} instead")
    said = ", ".join(part for part in parts if part)
    return f"{row['verdict']}: {said}" if said else str(row["verdict"])


def _before_and_after(found: Finding, timeline: Timeline) -> Iterator[Block]:
    """What the lanes around a finding show just before it and at it."""
    lane = timeline.lane_of(found)
    if lane is None or found.ts_ns is None:
        return
    own = timeline.lanes[lane]
    in_group = own.section == "core groups"
    around = [
        each
        for each in timeline.lanes
        if (each.group == own.group and each.section == own.section if in_group else each == own)
        or (not in_group and each.section == "counters" and not each.group)
    ]
    yield Heading("state before · after")
    for each in around:
        at = [timeline.at(each.id, moment_ns) for moment_ns in (found.ts_ns - 1, found.ts_ns)]
        name = each.label if in_group or each.section == "counters" else lane_name(each)
        yield Fact(name, tuple(_shown(span) for span in at))


def _shown(span: SpanView | None) -> str:
    return "idle" if span is None else (span.label or STATES[span.state].name)


def span_blocks(span: SpanView, timeline: Timeline) -> Iterator[Block]:
    """A span: what, where, when, and the whole row that it stands for."""
    yield Title(span.label or STATES[span.state].name)
    yield Paragraph(f"{STATES[span.state].name} on {lane_name(timeline.lanes[span.lane])}", MUTED)
    yield Heading("when")
    yield Fact("starts", (when(span.start_ns, timeline, 1),))
    yield Fact("ends", (when(span.end_ns, timeline, 1),))
    yield Fact("takes", (duration(span.end_ns - span.start_ns),))
    yield Heading(f"{span.ref[0]} row {span.ref[1]:,}")
    for name, value in timeline.row(span.ref).items():
        if value is None or name in ("ts_ns", "dur_ns"):
            continue
        yield from _cell(name, value, timeline)


def _cell(name: str, value: Any, timeline: Timeline) -> Iterator[Block]:
    if name == "args" and isinstance(value, str):
        yield from _arguments(value)
    elif name.endswith("_ns"):
        yield Fact(name.removesuffix("_ns").replace("_", " "), (when(value, timeline, 1),))
    elif isinstance(value, bool):
        yield Fact(name.replace("_", " "), ("yes" if value else "no",))
    else:
        yield Fact(
            name.replace("_", " "), (count(value) if isinstance(value, float) else str(value),)
        )


def _arguments(text: str) -> Iterator[Block]:
    try:
        arguments = json.loads(text)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        yield Fact("args", (text,))
        return
    yield Heading("arguments")
    for name, value in list(arguments.items())[:MAX_COLUMNS]:
        yield Fact(str(name), (value if isinstance(value, str) else json.dumps(value),))


def range_blocks(
    start_ns: int, end_ns: int, section: str | None, timeline: Timeline
) -> Iterator[Block]:
    """A marked range: how long it is, and how busy the lanes of a section are in it."""
    yield Title(f"{duration(end_ns - start_ns)} marked")
    yield Fact("from", (when(start_ns, timeline, 1),))
    yield Fact("to", (when(end_ns, timeline, 1),))
    lanes = [lane for lane in timeline.lanes if lane.section == section and lane.kind != "counter"]
    if end_ns <= start_ns or not lanes:
        return
    yield Heading("busy in it")
    picture = timeline.query(start_ns, end_ns, 1, [lane.id for lane in lanes])
    shares = picture.density[:, 0] / 255
    for at in np.argsort(-shares, kind="stable")[:MAX_COLUMNS]:
        num_spans = count(int(picture.count[at, 0]))
        share = Piece(f"{shares[at]:>4.0%}  ", ink(TEXT, PANEL))
        lane = Piece(f"{lane_name(lanes[at])}, {num_spans} spans", ink(MUTED, PANEL))
        yield Painted((share, lane))


def _nothing() -> Iterator[Block]:
    yield Title("Nothing selected")
    yield Paragraph("Click a span, or walk along a lane with h and l, between lanes with j and k.")
    yield Paragraph("n goes to the next finding, m marks a range, ? shows every key.", MUTED)
