"""What is said of an area: how busy its lanes were, and its sums as a table, for both fronts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.analyzers.findings.wording import times
from stepscope.app.present.where import lane_name, when
from stepscope.app.printable import plain
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.area.selection import GROUPINGS, MOST_LETTERS, Pick
from stepscope.app.timeline.area.sums import PERCENTILES, AreaSums
from stepscope.app.units import count, duration

MOST_ROWS = 500
MOST_NAMES = 8
"""Columns of a pivot on a screen; the rest is one column."""
SAYS = {
    "name": "by name", "state": "by state", "lane": "by lane", "pivot": "lanes by names",
}  # fmt: skip
assert tuple(SAYS) == GROUPINGS
NO_AREA = (
    "Mark a range to sum what is in it: v marks what is in view; or shift and drag over the lanes, "
    "or m where it begins and m where it ends. M sums over the section, one lane or all of them."
)
STARTS_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class AreaTable:
    """Texts under the names of their columns, all but the first to the right.

    `picks` says of each row what a click on it selects; `num_more` rows were left out.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    picks: tuple[Pick, ...]
    num_more: int = 0


def area_lines(sums: AreaSums, timeline: Timeline) -> Iterator[str]:
    """What area it is, how busy it was, and how spans at its edges count."""
    area, lanes = sums.area, sums.by_lane
    since, until = (when(ns, timeline, 1) for ns in (area.start_ns, area.end_ns))
    number = times(len(lanes), "lane")
    yield f"{duration(area.ns)} from {since} to {until} on {number}"
    whole = max(area.ns * len(lanes), 1)
    shares = [
        f"{name} {lanes[f'{name}_ns'].sum() / whole:.1%}" for name in ("busy", "held", "idle")
    ]
    spans = times(sums.num_spans, "span")
    yield f"{', '.join(shares)} of the lanes' time · {spans}"
    cut = count(sums.num_cut)
    yield f"{cut} of them reach beyond the edges: a span counts by its part inside."


def area_table(sums: AreaSums, timeline: Timeline, by: str, most: int = MOST_ROWS) -> AreaTable:
    """The sums of an area by name, by state, by lane, or of each lane by names."""
    if by == "lane":
        return _by_lane(sums, timeline, most)
    if by == "pivot":
        return _pivot(sums, timeline, most)
    return _measured(sums, by, most)


def _measured(sums: AreaSums, by: str, most: int) -> AreaTable:
    frame = sums.by_name if by == "name" else sums.by_state
    lengths = ["ns", "mean_ns", *(f"p{each}_ns" for each in PERCENTILES), "max_ns"]
    is_held = by == "name" and bool(frame["held_ns"].sum())
    lengths += ["held_ns"] if is_held else []
    called = {"ns": "sum", "mean_ns": "mean", "max_ns": "longest", "held_ns": "held"}
    columns = (by, "spans", *(called.get(each, each.removesuffix("_ns")) for each in lengths))
    rows = tuple(
        (str(row[by]), count(row["num_spans"]), *(_length(row[each]) for each in lengths))
        for row in frame.head(most).iter_rows(named=True)
    )
    picks = tuple(Pick(by, row[0][:MOST_LETTERS]) for row in rows)
    return AreaTable(columns, rows, picks, max(len(frame) - most, 0))


def _by_lane(sums: AreaSums, timeline: Timeline, most: int) -> AreaTable:
    frame = sums.by_lane
    columns = ("lane", "spans", "busy", "busy time", "held", "idle", "sum of spans")
    rows = tuple(
        (
            lane_name(timeline.lanes[row["lane"]]), count(row["num_spans"]),
            f"{row['busy_share']:.1%}",
            *(_length(row[each]) for each in ("busy_ns", "held_ns", "idle_ns", "ns")),
        )
        for row in frame.head(most).iter_rows(named=True)
    )  # fmt: skip
    return AreaTable(columns, rows, _picks_of_lanes(frame["lane"], most), max(len(frame) - most, 0))


def _pivot(sums: AreaSums, timeline: Timeline, most: int) -> AreaTable:
    names, frame, ns = sums.pivot(MOST_NAMES)
    rows = tuple(
        (lane_name(timeline.lanes[lane]), *(_length(each) for each in told))
        for lane, told in zip(frame["lane"].head(most), ns[:most].tolist(), strict=True)
    )
    picks = _picks_of_lanes(frame["lane"], most)
    return AreaTable(("lane", *names), rows, picks, max(len(frame) - most, 0))


def _picks_of_lanes(lanes: pl.Series, most: int) -> tuple[Pick, ...]:
    return tuple(Pick("lane", str(lane)) for lane in lanes.head(most))


def _length(ns: float | None) -> str:
    """A length; empty where nothing has one."""
    return "" if not ns else duration(round(ns))


def area_csv(sums: AreaSums, timeline: Timeline, by: str) -> str:
    """All rows as CSV, lengths in ns; of each lane by names a row for each that meet.

    A text that a spreadsheet would take for a formula has an apostrophe before it.
    """
    frame = {
        "name": lambda: sums.by_name, "state": lambda: sums.by_state,
        "lane": lambda: sums.by_lane, "pivot": lambda: sums.by_lane_and_name,
    }[by]()  # fmt: skip
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(frame.columns)
    for row in frame.iter_rows(named=True):
        writer.writerow(_csv_cell(name, value, timeline) for name, value in row.items())
    return written.getvalue()


def _csv_cell(name: str, value: object, timeline: Timeline) -> object:
    if name == "lane" and isinstance(value, int):
        lane = timeline.lanes[value]
        value = " · ".join(part for part in (lane.section, lane_name(lane)) if part)
    if not isinstance(value, str):
        return value
    text = plain(value)
    return f"'{text}" if text.startswith(STARTS_FORMULA) else text


def area_file(trace_name: str, by: str) -> str:
    """What a file of an area's sums is called."""
    stem = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in trace_name)
    return f"{stem.strip('-')[:80] or 'trace'}-area-by-{by}.csv"
