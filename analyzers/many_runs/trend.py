"""Metrics of many runs over commits or days: points in order, and where their level changes.

Runs that are not comparable are not one line: there is a group for each producer, workload and
configuration, by their digests. Runs with one key, such as a commit, are one point: the median of
those that tell. What a run does not tell is left out, and counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from statistics import median
from typing import Any

from stepscope.analyzers.many_runs.change_points import (
    ChangePoint,
    change_points,
    least_values,
)

FALSE_ALARMS = 0.05
"""How likely it is that any change is found in a table of runs in which nothing changed."""
METRICS = (
    "makespan_ns", "steps_per_s", "tokens_per_s", "goodput", "ttft_p50_ns", "ttft_p99_ns",
    "tpot_p50_ns", "latency_p99_ns", "max_token_gap_ns", "preemptions", "errors", "warnings",
)  # fmt: skip
"""What is looked at unless somebody asks for something else."""
COMPARABLE = ("producer", "workload_digest", "config_digest")
STEPS_PER_S = "steps_per_s"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Point:
    """Runs that are one point: what they have in common, their names, and which are partial."""

    key: str
    runs: tuple[str, ...]
    partial: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MetricTrend:
    """A metric over the points of a group: a value for each, None where no run of it tells.

    Places of its changes are those of points. `fewest` is set where too few points tell it for any
    change to be told from chance: so many it takes.
    """

    metric: str
    values: tuple[float | None, ...]
    changes: tuple[ChangePoint, ...]
    fewest: int | None

    @property
    def known(self) -> list[float]:
        """The values that are told, in order."""
        return [value for value in self.values if value is not None]

    @property
    def num_unknown(self) -> int:
        """How many points do not tell it."""
        return len(self.values) - len(self.known)

    def levels(self) -> list[tuple[int, int, float]]:
        """Its levels: from which point on, up to which, exclusive, and the median of these."""
        edges = [0, *(change.place for change in self.changes), len(self.values)]
        found = []
        for first, last in pairwise(edges):
            if known := [each for each in self.values[first:last] if each is not None]:
                found.append((first, last, median(known)))
        return found


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that can be compared: what they share, of COMPARABLE, None of each that is not told."""

    shared: Mapping[str, str | None]
    points: tuple[Point, ...]
    metrics: tuple[MetricTrend, ...]


@dataclass(frozen=True, slots=True)
class Trend:
    """The groups, in what order the runs are, and how many lines were looked at.

    The chance of a false alarm was shared out to `num_shares` of them.
    """

    groups: tuple[Group, ...]
    order: str
    num_runs: int
    num_lines: int
    num_shares: int

    @property
    def changes(self) -> list[tuple[Group, MetricTrend, ChangePoint]]:
        """Every change, in the order of groups and metrics."""
        return [
            (group, metric, change)
            for group in self.groups
            for metric in group.metrics
            for change in metric.changes
        ]

    def chance(self, change: ChangePoint) -> float:
        """How likely so strong a change is in any of the lines where nothing changed: 0 to 1."""
        return min(1.0, change.chance * self.num_shares)


def trend(
    rows: Sequence[Row], metrics: Sequence[str], by: str | None = None,
    *, as_given: bool = False, together: bool = False,
) -> Trend:  # fmt: skip
    """Order the rows, put them into groups and points, and look for changes in every metric.

    Rows are those of `stepscope summary`, with whatever columns somebody put beside them.
    """
    ordered, order = _ordered(rows, by, as_given)
    members: dict[tuple[str | None, ...], list[Row]] = {}
    for row in ordered:
        shared = tuple(None if row.get(name) is None else str(row[name]) for name in COMPARABLE)
        members.setdefault(() if together else shared, []).append(row)
    groups = {shared: _points(own, by) for shared, own in members.items()}
    lines = {
        shared: {metric: _values(points, metric) for metric in metrics}
        for shared, points in groups.items()
    }
    num_lines, num_shares = _looked_at(
        [*chain.from_iterable(own.values() for own in lines.values())]
    )
    chance = FALSE_ALARMS / num_shares
    found = (
        Group(
            dict(zip(COMPARABLE, shared, strict=False)),
            tuple(_point(key, runs) for key, runs in points),
            tuple(_metric(name, values, chance) for name, values in lines[shared].items()),
        )
        for shared, points in groups.items()
    )
    return Trend(tuple(found), order, len(rows), num_lines, num_shares)


def _point(key: str, runs: Sequence[Row]) -> Point:
    partial = [row for row in runs if row.get("partial")]
    names, partial_names = (
        tuple(str(row.get("trace")) for row in rows) for rows in (runs, partial)
    )
    return Point(key, names, partial_names)


def number(row: Row, metric: str) -> float | None:
    """What a row says of a metric; None where that is nothing, or no finite number."""
    value = row.get(metric)
    if metric == STEPS_PER_S and value is None:
        steps, length_ns = row.get("steps"), row.get("makespan_ns")
        value = steps * 1e9 / length_ns if steps is not None and length_ns else None
    return float(value) if value is not None and math.isfinite(value) else None


def _ordered(rows: Sequence[Row], by: str | None, as_given: bool) -> tuple[list[Row], str]:
    """The rows in order, and what order that is."""
    if by and not as_given and _is_order([row[by] for row in rows]):
        return sorted(rows, key=lambda row: row[by]), f"by {by}"
    if not as_given and all(row.get("began_ns") is not None for row in rows):
        in_time = sorted(rows, key=lambda row: row["began_ns"])
        return in_time, "in the order in which they were recorded"
    why = "" if as_given else ", as not every run says when it was recorded"
    return list(rows), f"in the order in which they were given{why}"


def _is_order(keys: Sequence[Any]) -> bool:
    """Whether keys are in an order by themselves: numbers, or times of one kind."""
    if all(isinstance(key, int | float) and not isinstance(key, bool) for key in keys):
        return True
    kinds = {type(key) for key in keys}
    return len(kinds) == 1 and not kinds & {str, bool, bytes}


def _points(rows: Sequence[Row], by: str | None) -> list[tuple[str, list[Row]]]:
    """The runs of each point, with its key, in the order in which the keys come first."""
    points: dict[Any, list[Row]] = {}
    for place, row in enumerate(rows):
        points.setdefault(row[by] if by else place, []).append(row)
    return [(str(key) if by else str(own[0].get("trace")), own) for key, own in points.items()]


def _values(points: Sequence[tuple[str, list[Row]]], metric: str) -> tuple[float | None, ...]:
    told = ([number(row, metric) for row in runs] for _, runs in points)
    known = ([value for value in values if value is not None] for values in told)
    return tuple(median(values) if values else None for values in known)


def _looked_at(lines: Sequence[Sequence[float | None]]) -> tuple[int, int]:
    """How many lines are looked at, those long enough and not always level; who share the chance.

    A line in which not even the clearest change could be told raises no alarm, and takes no part.
    Source: Tarone, A Modified Bonferroni Method for Discrete Data (1990).
    """
    known = [{place: value for place, value in enumerate(line) if value is not None}
             for line in lines]  # fmt: skip
    lengths = [len(line) for line in known if len(set(line.values())) > 1]
    for num in range(1, len(lengths) + 1):
        fewest = least_values(FALSE_ALARMS / num)
        long_enough = sum(length >= fewest for length in lengths)
        if long_enough <= num:
            return long_enough, num
    return 0, 1


def _metric(metric: str, values: tuple[float | None, ...], chance: float) -> MetricTrend:
    places = [place for place, value in enumerate(values) if value is not None]
    known = [value for value in values if value is not None]
    if len(known) < (least := least_values(chance)):
        return MetricTrend(metric, values, (), least)
    changes = tuple(
        ChangePoint(places[each.place], each.before, each.after, each.chance)
        for each in change_points(known, chance)
    )
    return MetricTrend(metric, values, changes, None)
