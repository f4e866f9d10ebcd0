"""A trend as text for a terminal, as Markdown for a comment, and as a structure for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from stepscope.analyzers.many_runs.trend import Group, MetricTrend, Trend
from stepscope.app.debug.shown.sparkline import blocks
from stepscope.app.present.trend.changes_said import (
    change_said,
    group_name,
    group_size,
    heading,
    shown_change,
    shown_value,
    unseen,
    verdict,
)
from stepscope.app.printable import markdown_literal, plain
from stepscope.app.text_table import format_table

WIDTH = 40
"""Glyphs of a sparkline; of more points each glyph is the median of neighbours."""
COLUMNS = ("metric", "first", "last", "change", "trend")


def text_lines(of: Trend) -> Iterator[str]:
    """What a terminal shows: a table for each group, and a line for each change."""
    yield plain(heading(of))
    for group in of.groups:
        yield ""
        yield plain(f"{group_name(group)}: {group_size(group)}")
        if rows := [_row(each) for each in group.metrics if each.known]:
            yield from (f"  {line}" for line in format_table(COLUMNS, rows))
        yield from (f"  ◆ {plain(line)}" for line in _changes(of, group))
        yield from (f"  {plain(line)}" for line in unseen(group))
    yield ""
    yield verdict(of)


def markdown_lines(of: Trend) -> Iterator[str]:
    """The same for a comment or a job's summary; names are neither Markdown nor HTML in it."""
    yield f"**{verdict(of)}**"
    yield ""
    yield markdown_literal(heading(of))
    for group in of.groups:
        yield ""
        yield f"#### {markdown_literal(f'{group_name(group)}: {group_size(group)}')}"
        yield ""
        changes = [*_changes(of, group)]
        yield from (f"- {markdown_literal(line)}" for line in changes)
        if changes:
            yield ""
        if rows := [_row(each) for each in group.metrics if each.known]:
            yield f"| {' | '.join(COLUMNS)} |"
            yield f"|---{'|--:' * 3}|---|"
            yield from (f"| {' | '.join((markdown_literal(row[0]), *row[1:]))} |" for row in rows)
            yield ""
        yield from (f"- {markdown_literal(line)}" for line in unseen(group))


def as_dict(of: Trend) -> dict[str, Any]:
    """The same for programs: values in the order of the points, null where none is told."""
    return {
        "order": of.order,
        "runs": of.num_runs,
        "lines": of.num_lines,
        "groups": [
            {
                **group.shared,
                "points": [
                    {"key": each.key, "runs": list(each.runs), "partial": list(each.partial)}
                    for each in group.points
                ],
                "metrics": [_metric_dict(of, group, each) for each in group.metrics],
            }
            for group in of.groups
        ],
    }


def _metric_dict(of: Trend, group: Group, metric: MetricTrend) -> dict[str, Any]:
    return {
        "metric": metric.metric,
        "values": list(metric.values),
        "unknown": metric.num_unknown,
        "too_few": metric.fewest is not None,
        "changes": [
            {
                "point": change.place,
                "key": group.points[change.place].key,
                "before": change.before,
                "after": change.after,
                "chance": of.chance(change),
            }
            for change in metric.changes
        ],
    }


def _changes(of: Trend, group: Group) -> Iterator[str]:
    for metric in group.metrics:
        yield from (change_said(of, group, metric, change) for change in metric.changes)


def _row(metric: MetricTrend) -> Sequence[str]:
    name, known = metric.metric, metric.known
    first, last = known[0], known[-1]
    ends = shown_value(name, first), shown_value(name, last)
    return plain(name), *ends, shown_change(name, first, last), _line(metric)


def _line(metric: MetricTrend) -> str:
    num = len(metric.values)
    width = min(num, WIDTH)
    parts = [metric.values[at * num // width : (at + 1) * num // width] for at in range(width)]
    known = [[value for value in part if value is not None] for part in parts]
    means = [median(part) if part else None for part in known]
    shown = [value for value in means if value is not None]
    return blocks(means, (min(shown), max(shown)))
