"""What is sent to the browser: the lanes once, then what is drawn of them, column by column.

Columns are arrays in the order of the machine's little end, which `pictures/column_bytes.py` makes
bytes of: float64 for times and values (ns from the first moment of the trace), uint8 for states
and densities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from stepscope.app import light
from stepscope.app.live.carried_over import NEWEST_NS
from stepscope.app.palette import NAMES_OF_CORES, PARTS, STATES
from stepscope.app.printable import plain
from stepscope.app.timeline import Lane, Picture, SpanView
from stepscope.app.timeline.keymap import FIRST_KEYS, section_of
from stepscope.app.timeline.lane_rows import INLINE_GROUPS, Row
from stepscope.app.timeline.lanes.collective_calls import CALLS
from stepscope.app.timeline.lanes.kv_blocks import KV_BLOCKS
from stepscope.app.timeline.lanes.slots import SLOTS
from stepscope.app.timeline.lanes.tracks import SAYS
from stepscope.app.timeline.lanes.waiting_queue import ABOUT as ABOUT_QUEUE
from stepscope.app.timeline.lanes.waiting_queue import WAITING_QUEUE
from stepscope.app.timeline.section_states import about_steps, states_in
from stepscope.app.timeline.viewport import MIN_SPAN_NS, PAN, WHEEL, ZOOM
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.view import View

LISTED = 256
"""Spans of a lane that are sent one by one; a lane with more is sent as pixels."""
WIDEST = 8192
"""Pixels of a picture; a request for more gets this many."""
MOST_LANES = 512

Json = dict[str, Any]


def model(loaded: LoadedTrace) -> Json:
    """What stays the same for a page: lanes and their rows, states, findings, keys, factors."""
    told = notes(loaded)
    other = loaded.timeline.coloured("state" if loaded.timeline.colours == "name" else "name")
    lanes = [
        {"id": lane.id, "section": lane.section, "group": lane.group, "kind": lane.kind,
         **_on_its_own(lane)}
        for lane in loaded.timeline.lanes
    ]  # fmt: skip
    return {
        "name": plain(loaded.name),
        "lanes": lanes,
        "rows": [_row(row, told) for row in loaded.timeline.outline],
        "states": [
            {
                "name": state.name,
                "cue": state.cue,
                "glyph": state.glyph,
                "parts": [*PARTS] if state.cue == "split" else [],
                "grounds": (grounds := _grounds(state.colour)),
                "inks": [*map(light.ink, grounds)],
                "called": loaded.timeline.called(number),
                "called_otherwise": other.called(number),
            }
            for number, state in enumerate(STATES)
        ],
        "findings": [_mark(loaded, key) for key in loaded.findings],
        "length": loaded.length,
        "colours": loaded.timeline.colours,
        "collapsed": sorted(loaded.timeline.collapsed_at_first),
        "keymap": [asdict(key) | {"section": section_of(key)} for key in loaded.keys],
        "first_keys": FIRST_KEYS,
        "revision": loaded.key,
        "live": loaded.live is not None,
        "checking": loaded.is_being_checked,
        "has_clock": loaded.has_clock,
        "is_two": not loaded.is_one,
        "recent": NEWEST_NS,
        "factors": {"zoom": ZOOM, "pan": PAN, "wheel": WHEEL, "min_span": MIN_SPAN_NS},
    }


def _on_its_own(lane: Lane) -> Json:
    """What a lane is called where it stands alone, as it does when it is pinned."""
    return {"name": lane.group or lane.label, "part": lane.label if lane.group else ""}


def _row(row: Row, told: Mapping[str, str]) -> Json:
    """A row by its lanes, its name and what stands beside it, and what collapses it."""
    lane, group = row.lane, row.section if row.kind == "section" else row.group
    lanes = [each.id for each in row.lanes]
    shown: Json = {"kind": row.kind, "lanes": lanes, "under": row.under, "group": group}
    label = "" if lane is None or lane.depth else lane.label
    if row.kind == "section":
        named = {"name": row.section, "note": told.get(row.section, "")}
    elif row.kind == "strip":
        named = {"name": row.group, "part": f"× {len(row.lanes)}"}
    elif row.section in INLINE_GROUPS:
        named = {"name": row.group if row.key else "", "part": label}
    else:
        named = {"name": row.group if row.kind == "group" else label}
    return {**shown, **named, "key": row.key}


def notes(loaded: LoadedTrace) -> dict[str, str]:
    """What the spans of each section are, beside its name."""
    budget = loaded.composition.budget
    known = budget[~np.isnan(budget)]
    budgeted = f", against a budget of {int(known.max()):,} tokens" if len(known) else ""
    return {
        "steps": f"{about_steps(loaded.timeline)}{budgeted}",
        "core groups": f"{NAMES_OF_CORES} · hatched: held, waiting for its group",
        "requests": " · ".join(name for _, name in states_in("requests", loaded.timeline)),
        SLOTS: " · ".join(name for _, name in states_in(SLOTS, loaded.timeline)),
        WAITING_QUEUE: ABOUT_QUEUE,
        "segments": "parts of a batch that run by themselves",
        "buffers": "accesses by stream; what each buffer held, until it was last read",
        **{
            section: " · ".join(name for _, name in states_in(section, loaded.timeline))
            for section in (CALLS, KV_BLOCKS)
        },
        **SAYS,
    }


def _grounds(colour: str) -> list[str]:
    """What a colour of the palette is in dark, and in light."""
    return [light.colour(colour, is_light=each) for each in (False, True)]


def _mark(loaded: LoadedTrace, key: str) -> Json:
    finding = loaded.findings[key]
    start, end = loaded.finding_range(finding) or (None, None)
    lane = loaded.timeline.lane_of(finding)
    return {"key": key, "severity": finding.severity, "start": start, "end": end, "lane": lane}


def picture(loaded: LoadedTrace, asked: Mapping[str, Any]) -> Json:
    """What some lanes show in a window: spans where they are few, pixels where they are many.

    `asked` has t0 and t1 (any numbers; the answer covers whole ns), width, lanes, hide and colours.
    """
    t0, t1 = _window(loaded, asked)
    width = min(max(int(asked["width"]), 1), WIDEST)
    num_lanes = len(loaded.timeline.lanes)
    lanes = [lane for lane in asked["lanes"] if 0 <= lane < num_lanes][:MOST_LANES]
    hidden = [at for at, state in enumerate(STATES) if state.name in asked["hide"]]
    first, last = t0 + loaded.origin, t1 + loaded.origin
    timeline = loaded.coloured(View(colours=asked.get("colours")))
    seen = timeline.query(first, last, width, lanes, hidden)
    listed, dense, counters = [], [], []
    shown = timeline.listed(lanes, first, last, LISTED)
    for lane, spans in zip(lanes, shown, strict=True):
        if series := timeline.series(lane, first, last, width):
            line = {"lane": lane, "values": packed(series.values, "<f8")}
            counters.append({**line, **series.scale})
            continue
        if spans is None:
            dense.append(lane)
        else:
            listed.append((lane, spans))
    labels: dict[str, int] = {}
    return {
        "t0": t0,
        "t1": t1,
        "width": width,
        "lanes": lanes,
        "dense": dense,
        "state": packed(seen.state, "u1"),
        "density": packed(seen.density, "u1"),
        **marks(seen, dense, {lane: row for row, lane in enumerate(lanes)}),
        "sparse": [_columns(loaded, lane, spans, labels) for lane, spans in listed],
        "labels": list(labels),
        "counters": counters,
        "beside": loaded.times_beside(first, last, width),
        "revision": loaded.key,
    }


def marks(seen: Picture, dense: Sequence[int], row: Mapping[int, int]) -> Json:
    """`marked`: of lanes that come as pixels those that have marks, and their rows of `mark`."""
    marked = [lane for lane in dense if seen.mark[row[lane]].any()]
    return {"marked": marked, "mark": packed(seen.mark[[row[lane] for lane in marked]], "u1")}


def parts(spans: Sequence[SpanView]) -> Json:
    """Where any span is split, the shares of each as `PARTS`, in 255ths; none where unknown."""
    if not any(span.parts for span in spans):
        return {}
    shares = np.array([span.parts or (0.0,) * len(PARTS) for span in spans])
    return {"parts": packed(np.ceil(shares * 255).clip(0, 255), "u1")}


def _window(loaded: LoadedTrace, asked: Mapping[str, Any]) -> tuple[int, int]:
    """A window of whole ns that is never empty, and reaches at most a trace beyond the trace."""
    t0 = int(max(-loaded.length, min(asked["t0"], loaded.length)))
    return t0, int(max(t0 + 1, min(asked["t1"], 2 * loaded.length)))


def _columns(
    loaded: LoadedTrace, lane: int, spans: Sequence[SpanView], labels: dict[str, int]
) -> Json:
    return {
        "lane": lane,
        "start": packed([span.start_ns - loaded.origin for span in spans], "<f8"),
        "end": packed([span.end_ns - loaded.origin for span in spans], "<f8"),
        "state": packed([span.state for span in spans], "u1"),
        "label": [labels.setdefault(span.label, len(labels)) for span in spans],
        **parts(spans),
    }


def packed(values: npt.ArrayLike, dtype: str) -> npt.NDArray[Any]:
    """The values as a column."""
    return np.ascontiguousarray(values, dtype)
