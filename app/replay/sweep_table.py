"""The runs of a sweep as a table: who was served, how fast, how evenly, and what was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepscope.app.present.blocks import Table
from stepscope.app.present.diff_text import amount
from stepscope.app.present.plain_text import table_lines
from stepscope.app.printable import plain
from stepscope.app.replay.sweep import Axis, Point, said

AS_RECORDED = "recorded"


@dataclass(frozen=True, slots=True)
class Measure:
    """A column: the total that it shows, what it is called, and whether less of it is better."""

    total: str
    label: str
    is_cost: bool = True


MEASURES = (
    Measure("finished", "finished", is_cost=False),
    Measure("latency_mean_ns", "latency mean"),
    Measure("latency_p99_ns", "latency p99"),
    Measure("ttft_mean_ns", "ttft mean"),
    Measure("max_token_gap_ns", "max token gap"),
    Measure("fairness", "fairness", is_cost=False),
    Measure("preemptions", "preemptions"),
    Measure("tokens_per_s", "tokens/s", is_cost=False),
    Measure("makespan_ns", "makespan"),
)
FOUND = ("error", "warning")


def sweep_lines(points: Sequence[Point], axes: Sequence[Axis]) -> Iterator[str]:
    """A line per run; runs that were refused or given up are named below."""
    names = tuple(name for name, _ in axes)
    labels = tuple(each.label for each in MEASURES)
    header = (*names, *labels, *(f"{name}s" for name in FOUND))
    rows = tuple(_row(each, names) for each in points)
    yield from table_lines(Table(header, rows, to_right=header, is_ruled=False))
    for each in points:
        if why := each.refused or each.stopped:
            how = "refused" if each.refused else "given up"
            yield f"{plain(said(each.settings))}: {how}: {plain(why)}"


def _row(point: Point, names: Sequence[str]) -> tuple[str, ...]:
    set_to = [point.settings.get(name, AS_RECORDED if name == names[0] else "") for name in names]
    shown = [amount(each.total, point.totals.get(each.total)) for each in MEASURES]
    found = [f"{point.loud[name]:,}" if name in point.loud else "-" for name in FOUND]
    return (*set_to, *shown, *found)
