"""What a report holds of the timeline: plates, pictures of windows that the page draws from.

The first is the whole run: the spans of lanes that have few, exactly, and pixels of the others.
Those around findings are as fine. A plate is packed as gzip of what `pictures/column_bytes.py`
makes of it, as a picture is that the page asks for.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stepscope.app.timeline import SpanView, Viewport
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.pictures.column_bytes import with_columns
from stepscope.app.web.report.shown_lanes import LONGEST
from stepscope.app.web.wire import marks, parts

WHOLE_WIDTH = 4096
"""Pixels of the whole run."""
NEAR_WIDTH = 1600
MOST_SPANS, MOST_NEAR = 60_000, 12_000
"""Spans that the plate of the whole run lists, and one around a finding."""
MOST_PLATES, COARSEST = 60, 16
"""Plates around findings at most; by how much fewer pixels the whole run is drawn at most."""
AROUND = 1.0
"""How much more than a finding's frame its plate shows, on either side."""


@dataclass(frozen=True, slots=True)
class Plate:
    """A window in ns from the first moment of the trace, packed; and which lanes it lists."""

    t0: int
    t1: int
    packed: bytes
    listed: frozenset[int]


def plates(
    loaded: LoadedTrace, lanes: Sequence[int], during: tuple[int, int] | None, room: int
) -> list[bytes]:
    """That of the whole run, and those around what matters, as many as have room in `room` bytes.

    What matters are findings, the worst first, and before them the step `during` which a run
    diverges. Where every lane is listed in the whole run there is no need of others.
    """
    if not lanes:
        return []
    whole = _whole_run(loaded, lanes, room)
    made = [whole]
    room -= len(whole.packed)
    for window in () if len(whole.listed) == len(lanes) else _windows(loaded, during):
        if any(each.t0 <= window[0] and window[1] <= each.t1 for each in made[1:]):
            continue
        plate = _plate(loaded, lanes, window, NEAR_WIDTH, MOST_NEAR, whole.listed)
        room -= len(plate.packed)
        if room < 0 or len(made) > MOST_PLATES:
            break
        made.append(plate)
    return [each.packed for each in made]


def _whole_run(loaded: LoadedTrace, lanes: Sequence[int], room: int) -> Plate:
    """The plate of everything, coarser where it would take more than half of the room."""
    finer = 1
    while True:
        window, most = (0, loaded.length), MOST_SPANS // finer**2
        plate = _plate(loaded, lanes, window, WHOLE_WIDTH // finer, most)
        if len(plate.packed) <= room // 2 or finer >= COARSEST:
            return plate
        finer *= 2


def _windows(loaded: LoadedTrace, during: tuple[int, int] | None) -> Iterator[tuple[int, int]]:
    """The window around each place that matters, as a jump to it frames it and some more."""
    places = map(loaded.finding_range, loaded.findings.values())
    for ends in (during, *places):
        if ends is not None:
            frame = Viewport.framing(*ends, (0, loaded.length))
            more = round(frame.span_ns * AROUND)
            yield max(0, frame.t0 - more), min(loaded.length, frame.t1 + more)


def _plate(
    loaded: LoadedTrace,
    lanes: Sequence[int],
    window: tuple[int, int],
    width: int,
    most: int,
    listed: frozenset[int] = frozenset(),
) -> Plate:
    """A window of lanes, without those that are `listed` elsewhere; `most` spans are listed."""
    first, last = window[0] + loaded.origin, window[1] + loaded.origin
    timeline, labels = loaded.timeline, dict[str, int]()
    counters = [lane for lane in lanes if timeline.lanes[lane].kind == "counter"]
    others = [lane for lane in lanes if lane not in listed and lane not in {*counters}]
    seen = timeline.query(first, last, width, others)
    num_spans = dict(zip(others, seen.count.sum(axis=1, dtype=np.int64).tolist(), strict=True))
    number = {lane: place for place, lane in enumerate(lanes)}
    sparse: dict[int, dict[str, Any]] = {}
    for lane in sorted(others, key=num_spans.__getitem__):
        # A pixel counts at most one span that an earlier pixel has counted, too.
        if num_spans[lane] > most + width:
            break
        spans = timeline.spans(lane, first, last, most + 1)
        if len(spans) > most:
            break
        most -= len(spans)
        sparse[lane] = _columns(number[lane], loaded.origin, spans, labels)
    dense = [row for row, lane in enumerate(others) if lane not in sparse]
    head = {
        "t0": window[0], "t1": window[1], "width": width,
        "listed": len(sparse) == len(others),
        "dense": [number[others[row]] for row in dense],
        "state": seen.state[dense], "density": seen.density[dense],
        **marks(seen, [number[others[row]] for row in dense],
                {number[lane]: row for row, lane in enumerate(others)}),
        "sparse": [*sparse.values()], "labels": [*labels],
        "counters": [
            _counter(loaded, lane, number[lane], (first, last, width)) for lane in counters
        ],
    }  # fmt: skip
    return Plate(*window, packed(head), frozenset(sparse))


def _columns(
    lane: int, origin: int, spans: Sequence[SpanView], labels: dict[str, int]
) -> dict[str, Any]:
    """Spans of a lane by column: the time from the end of the one before, and how long each is."""
    gaps, before = [], origin
    for span in spans:
        gaps.append(span.start_ns - before)
        before = span.end_ns
    return {
        "lane": lane,
        "gap": gaps,
        "dur": [span.end_ns - span.start_ns for span in spans],
        "state": np.array([span.state for span in spans], np.uint8),
        "label": [labels.setdefault(_cut(span.label), len(labels)) for span in spans],
        **parts(spans),
    }


def _cut(label: str) -> str:
    return f"{label[:LONGEST]}…" if len(label) > LONGEST else label


def _counter(
    loaded: LoadedTrace, lane: int, number: int, window: tuple[int, int, int]
) -> dict[str, Any]:
    series = loaded.timeline.series(lane, *window)
    assert series is not None
    values = np.ascontiguousarray(series.values, "<f8")
    return {"lane": number, **series.scale, "values": values}


def packed(head: dict[str, Any]) -> bytes:
    """A line of JSON and the columns behind it, as gzip: the same bytes for the same plate."""
    return gzip.compress(with_columns(head), 9, mtime=0)
