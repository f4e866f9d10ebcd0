"""Which lanes a report holds, and the page's model of these alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stepscope.app.printable import plain
from stepscope.app.web import wire
from stepscope.app.web.loaded import LoadedTrace

MOST_LANES = 512
"""Lanes that a report shows; of a trace with more, those that findings are about come first."""
BESIDE = 8
"""Lanes on either side of one that a finding is about, which are shown with it."""
MOST_MARKS = 2_000
"""Findings that are marked on the timeline, the worst first."""
LONGEST = 200
"""Letters of a lane's name, or of a span's, that a report holds."""


def lanes_of(loaded: LoadedTrace) -> list[int]:
    """The lanes that a report holds, in order: all, or those of findings and the first ones."""
    lanes = loaded.timeline.lanes
    if len(lanes) <= MOST_LANES:
        return list(range(len(lanes)))
    wanted: dict[int, None] = {}
    of_findings = (loaded.timeline.lane_of(found) for found in loaded.findings.values())
    for lane in of_findings:
        if len(wanted) >= MOST_LANES - BESIDE:
            break
        if lane is not None:
            near = range(max(0, lane - BESIDE), min(len(lanes), lane + BESIDE + 1))
            wanted |= dict.fromkeys(near)
    for lane in range(len(lanes)):
        if len(wanted) >= MOST_LANES:
            break
        wanted[lane] = None
    return sorted(wanted)[:MOST_LANES]


def model(loaded: LoadedTrace, lanes: Sequence[int]) -> dict[str, Any]:
    """The page's model with these lanes alone, which are numbered anew from 0."""
    whole = wire.model(loaded)
    number = {lane: place for place, lane in enumerate(lanes)}
    rows = [_row(row, number) for row in whole["rows"]]
    return {
        **whole,
        "lanes": [_cut({**whole["lanes"][lane], "id": number[lane]}) for lane in lanes],
        "rows": _without_empty([row for row in rows if row is not None]),
        "findings": [
            {**found, "lane": number.get(found["lane"])} for found in whole["findings"][:MOST_MARKS]
        ],
        "flags": [
            [
                flag.name,
                plain(flag.note),
                flag.ts_ns - loaded.origin,
                number.get(-1 if flag.lane is None else flag.lane),
            ]
            for flag in loaded.flags.now
        ],
        "name": whole["name"][:LONGEST],
    }


def _row(row: Mapping[str, Any], number: Mapping[int, int]) -> dict[str, Any] | None:
    """A row with the lanes that are there; None for one of which none is."""
    own = [number[lane] for lane in row["lanes"] if lane in number]
    if row["lanes"] and not own:
        return None
    shown = _cut({**row, "lanes": own})
    if row["kind"] == "strip":
        shown["part"] = f"× {len(own)}"
    return shown


def _without_empty(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the headers of which no lane is there."""
    over = {key for row in rows if row["lanes"] for key in row["under"]}
    return [row for row in rows if row["lanes"] or row["key"] in over]


def _cut(named: dict[str, Any]) -> dict[str, Any]:
    """The same with names that have an end."""
    return {
        key: f"{value[:LONGEST]}…" if isinstance(value, str) and len(value) > LONGEST else value
        for key, value in named.items()
    }
