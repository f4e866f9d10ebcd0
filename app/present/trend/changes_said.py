"""What is said of a trend, wherever it is shown: values, changes, groups, and what is not told."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.many_runs.change_points import ChangePoint
from stepscope.analyzers.many_runs.trend import FALSE_ALARMS, Group, MetricTrend, Point, Trend
from stepscope.app.text_table import format_cell
from stepscope.app.units import duration


def shown_value(metric: str, value: float | None) -> str:
    """A value with its unit; `-` where there is none."""
    if value is None:
        return "-"
    if metric.endswith("_ns"):
        return duration(round(value))
    return format_cell(int(value) if value.is_integer() else value)


def shown_change(metric: str, before: float, after: float) -> str:
    """By how much it changed: a share of what it was, or where that is 0 the difference."""
    if before == after:
        return "0%"
    if before == 0:
        sign = "+" if after > 0 else ""
        return f"{sign}{shown_value(metric, after)}"
    return f"{(after - before) / abs(before):+,.1%}"


def change_said(of: Trend, group: Group, metric: MetricTrend, change: ChangePoint) -> str:
    """Between which points the level of a metric changed, from what to what, and how sure it is."""
    before, after = change.before, change.after
    last = max(place for place in range(change.place) if metric.values[place] is not None)
    levels = f"from {shown_value(metric.metric, before)} to {shown_value(metric.metric, after)}"
    return (
        f"{metric.metric}: {levels} ({shown_change(metric.metric, before, after)}) between "
        f"{point_name(group.points[last])} and {point_name(group.points[change.place])}; "
        f"chance {chance_said(of, change)}"
    )


def chance_said(of: Trend, change: ChangePoint) -> str:
    """How likely so much is in any line of the table where nothing changed, as a share."""
    return f"{of.chance(change):.2%}"


def point_name(point: Point) -> str:
    """A point as it is named, and of how many runs it is the median where these are several."""
    return point.key if len(point.runs) == 1 else f"{point.key} ({len(point.runs):,} runs)"


def group_name(group: Group) -> str:
    """Which runs are compared with each other."""
    if not group.shared:
        return "all runs together"
    names = {"workload_digest": "workload", "config_digest": "configuration"}
    return ", ".join(
        value
        if name == "producer" and value
        else f"{names.get(name, name)} {value or 'not recorded'}"
        for name, value in group.shared.items()
    )


def group_size(group: Group) -> str:
    """How many runs a group has, and how many points they make where that is another number."""
    num_runs, num_points = sum(len(point.runs) for point in group.points), len(group.points)
    runs = times(num_runs, "run")
    return runs if num_runs == num_points else f"{runs}, {num_points:,} points"


FEW = 3


def unseen(group: Group) -> Iterator[str]:
    """What of a group could not be looked at, and why: what no run tells, and what too few do."""
    if partial := [name for point in group.points for name in point.partial]:
        more = f" and {len(partial) - FEW:,} more" if len(partial) > FEW else ""
        yield f"partial, see column partial of the summary: {', '.join(partial[:FEW])}{more}"
    if absent := [each.metric for each in group.metrics if not each.known]:
        yield f"not recorded by any run: {', '.join(absent)}"
    few = [each for each in group.metrics if each.fewest is not None and len(set(each.known)) > 1]
    few += [each for each in group.metrics if each.fewest is not None and len(each.known) == 1]
    if few:
        named = ", ".join(f"{each.metric} ({len(each.known):,})" for each in few)
        takes = f"which takes {few[0].fewest:,}"
        yield f"too few runs to tell a change from chance, {takes}: {named}"
    for each in group.metrics:
        if each.known and each.num_unknown:
            total = len(each.values)
            untold = f"{each.num_unknown:,} of {total:,}"
            yield f"{each.metric}: {untold} do not tell it, and are left out"


def verdict(of: Trend) -> str:
    """How many changes there are, and how often noise alone would show any."""
    found = len(of.changes)
    changes = {0: "no change point", 1: "1 change point"}.get(found, f"{found:,} change points")
    if not of.num_lines:
        return "no change point: no metric has enough runs, or all are always the same"
    most = f"at most {FALSE_ALARMS:.0%} of tables of {times(of.num_lines, 'line')} show any"
    return f"{changes}; where nothing changed, {most}"


def heading(of: Trend) -> str:
    """How many runs there are, in which order, and in how many groups."""
    if of.num_runs == 1:
        return "1 run"
    runs = f"{of.num_runs:,} runs"
    groups = len(of.groups)
    parts = f", in {groups:,} groups that are not compared with each other" if groups > 1 else ""
    return f"{runs} {of.order}{parts}"
