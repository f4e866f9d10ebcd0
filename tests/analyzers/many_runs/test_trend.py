"""A trend: rows are put in order, into groups and points, and what they do not tell is left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from stepscope.analyzers.many_runs.trend import FALSE_ALARMS, METRICS, Row, Trend, trend
from tests.looped import looped
from tests.tiers import slow


def runs(*values: float | None, metric: str = "makespan_ns", **others: Any) -> list[Row]:
    """A run for each value; what is a function of the place is told by each run of its own."""
    return [
        {"trace": f"run-{place}", metric: value}
        | {name: of(place) if callable(of) else of for name, of in others.items()}
        for place, value in enumerate(values)
    ]


def values_of(found: Trend) -> list[tuple[float | None, ...]]:
    return [metric.values for group in found.groups for metric in group.metrics]


def names(found: Trend) -> list[str]:
    return [point.key for group in found.groups for point in group.points]


SHIFT = [*np.random.default_rng(1).normal(100, 1, 12), *np.random.default_rng(2).normal(110, 1, 12)]


def test_runs_come_in_the_order_in_which_they_were_recorded() -> None:
    found = trend(runs(1, 2, 3, began_ns=lambda place: -place), ["makespan_ns"])

    assert values_of(found) == [(3, 2, 1)]
    assert found.order == "in the order in which they were recorded"


def test_where_one_does_not_say_when_all_stay_as_they_were_given_and_that_is_said() -> None:
    rows = runs(1, 2, 3, began_ns=lambda place: -place or None)

    found = trend(rows, ["makespan_ns"])

    assert values_of(found) == [(1, 2, 3)]
    assert "not every run says when" in found.order


def test_as_given_goes_before_the_time_of_recording() -> None:
    rows = runs(1, 2, 3, began_ns=lambda place: -place)

    assert values_of(trend(rows, ["makespan_ns"], as_given=True)) == [(1, 2, 3)]


def test_a_column_of_numbers_is_an_order_and_texts_come_as_they_come_first() -> None:
    rows = runs(1, 2, 3, 4, number=lambda place: -place, commit=lambda place: "zaaz"[place])

    assert values_of(trend(rows, ["makespan_ns"], "number")) == [(4, 3, 2, 1)]
    found = trend(rows, ["makespan_ns"], "commit")
    assert names(found) == ["z", "a"]


def test_runs_of_one_commit_are_the_median_of_those_that_tell() -> None:
    rows = runs(1, 5, None, 9, 4, None, commit=lambda place: "aaaabc"[place])

    found = trend(rows, ["makespan_ns"], "commit")

    assert values_of(found) == [(5, 4, None)]
    assert [len(point.runs) for point in found.groups[0].points] == [4, 1, 1]
    assert found.groups[0].metrics[0].num_unknown == 1


def test_other_workloads_and_configurations_are_other_groups_unless_they_are_joined() -> None:
    rows = runs(1, 2, 3, 4, producer="vllm", workload_digest=lambda place: "abab"[place])

    assert values_of(trend(rows, ["makespan_ns"])) == [(1, 3), (2, 4)]
    assert trend(rows, ["makespan_ns"]).groups[1].shared["workload_digest"] == "b"
    assert values_of(trend(rows, ["makespan_ns"], together=True)) == [(1, 2, 3, 4)]


def test_a_change_is_at_the_run_that_is_the_first_of_the_new_level() -> None:
    values: list[float | None] = [*SHIFT]
    values[3] = values[14] = None

    found = trend(runs(*values), ["makespan_ns"])

    [(_, metric, change)] = found.changes
    assert change.place == 12
    assert metric.num_unknown == 2
    assert [(first, last) for first, last, _ in metric.levels()] == [(0, 12), (12, 24)]


@looped("unknown", [None, float("nan"), float("inf")])
def test_what_is_not_known_is_never_zero(unknown: float | None) -> None:
    found = trend(runs(*[100.0] * 12, *[unknown] * 12), ["makespan_ns"])

    [metric] = found.groups[0].metrics
    assert (metric.changes, metric.num_unknown) == ((), 12)


def test_steps_a_second_follow_from_steps_and_makespan_and_are_unknown_without_these() -> None:
    rows = runs(2e9, None, 0, steps=4)

    assert values_of(trend(rows, ["steps_per_s"])) == [(2.0, None, None)]


def test_few_runs_are_too_few_to_tell_and_it_is_said_how_many_it_takes() -> None:
    [metric] = trend(runs(1, 1, 1, 9, 9), ["makespan_ns"]).groups[0].metrics

    assert metric.fewest == 8


def test_the_more_lines_are_looked_at_the_less_each_may_err() -> None:
    line = [100.0, 101, 102, 103, 110, 111, 112, 113]
    alone = trend(runs(*line), ["makespan_ns"])
    one_of_many = [
        {**row, **{name: float(value) for name in METRICS}}
        for row, value in zip(runs(*line), line, strict=True)
    ]

    assert len(alone.changes) == 1
    assert alone.chance(alone.changes[0][2]) <= FALSE_ALARMS
    assert trend(one_of_many, METRICS).changes == []


def test_lines_too_short_for_any_change_take_nothing_of_the_chance() -> None:
    rows = [
        *runs(*SHIFT, workload_digest="long"),
        *(row for each in range(200) for row in runs(1, 2, 3, workload_digest=f"short {each}")),
    ]

    found = trend(rows, ["makespan_ns"])

    assert (found.num_lines, found.num_shares) == (1, 1)
    assert [group.shared["workload_digest"] for group, _, _ in found.changes] == ["long"]


@slow
def test_at_most_1_in_20_tables_of_10_metrics_in_which_nothing_changed_shows_any_change() -> None:
    random = np.random.default_rng(5)
    metrics = [f"m{each}" for each in range(10)]
    tables = random.lognormal(size=(100, 30, 10))

    alarms = sum(
        bool(trend([dict(zip(metrics, row, strict=True)) for row in table], metrics).changes)
        for table in tables
    )

    # Three standard deviations of what chance makes of 100 tables above the 5 that are promised.
    assert alarms <= 5 + 3 * np.sqrt(100 * 0.05 * 0.95)
