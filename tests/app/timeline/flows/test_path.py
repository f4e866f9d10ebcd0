"""The path to a span adds up to the time that it spans, and goes over what held it up."""

from __future__ import annotations

import random

import pytest

from stepscope.app.palette import HELD
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.flows.path import Path, families
from tests.app.both_fronts.looked import Looked
from tests.app.timeline.flows.test_ties import block, graph, shown
from tests.app.timeline.profiles import call, kernel
from tests.traces import trace_of

NUM_PATHS = 10


def told(timeline: Timeline, path: Path) -> list[tuple[str, int, int]]:
    """Each part: the label of its span, in brackets where it is a gap, from when until when."""
    found = []
    for each in path.parts:
        label = "" if each.number is None else timeline.flows.view(each.number).label
        found.append((f"({label})" if each.is_gap else label, each.start_ns, each.end_ns))
    return found


def path_to(timeline: Timeline, label: str) -> list[tuple[str, int, int]]:
    path = timeline.flows.path_to(shown(timeline, label))
    assert path is not None
    return told(timeline, path)


def test_a_kernel_that_waited_for_its_launch_has_the_launch_on_its_path() -> None:
    spans = [
        kernel("a", 0, 20),
        call("launch", 50, 10, correlation=1),
        kernel("b", 65, 10, correlation=1),
    ]

    path = path_to(Timeline.of(trace_of(spans=spans)), "b")

    assert path == [("launch", 50, 60), ("()", 60, 65), ("b", 65, 75)]


def test_a_kernel_that_waited_for_its_stream_has_the_kernel_before_on_its_path() -> None:
    spans = [
        kernel("a", 0, 60),
        call("launch", 10, 10, correlation=1),
        kernel("b", 65, 10, correlation=1),
    ]

    path = path_to(Timeline.of(trace_of(spans=spans)), "b")

    assert path == [("a", 0, 60), ("()", 60, 65), ("b", 65, 75)]


def test_a_launch_that_lasts_longer_counts_until_its_kernel_began() -> None:
    spans = [call("launch", 50, 30, correlation=1), kernel("b", 65, 10, correlation=1)]

    path = path_to(Timeline.of(trace_of(spans=spans)), "b")

    assert path == [("launch", 50, 65), ("b", 65, 75)]


def test_a_gap_on_a_thread_is_told_by_the_call_that_it_is_in() -> None:
    spans = [call("first", 0, 10), call("outer", 20, 80), call("inner", 50, 10)]

    path = path_to(Timeline.of(trace_of(spans=spans)), "inner")

    assert path == [("first", 0, 10), ("()", 10, 20), ("(outer)", 20, 50), ("inner", 50, 60)]


def test_a_block_waits_for_the_last_block_of_the_task_before() -> None:
    timeline = Timeline.of(graph(task_edges=[{"from_task": 1, "to_task": 2}]))

    path = path_to(timeline, "task-2 0/2")

    assert path == [("task-1 1/2", 0, 30), ("()", 30, 35), ("task-2 0/2", 35, 50)]


def test_the_time_for_which_a_core_was_held_is_a_gap() -> None:
    blocks = [block(1, 0, 0, 0, 10), {**block(2, 0, 0, 40, 50), "dispatch_ns": 15}]
    timeline = Timeline.of(trace_of(core_spans=blocks))
    last = timeline.at(0, 45)
    assert last is not None

    path = timeline.flows.path_to(last)

    assert path is not None
    gaps = [each for each in path.parts if each.is_gap]
    assert [(each.start_ns, each.end_ns) for each in gaps] == [(10, 15), (15, 40)]
    assert gaps[1].number is not None
    assert timeline.flows.view(gaps[1].number).state == HELD


def test_a_path_that_goes_back_further_says_so_and_still_adds_up() -> None:
    timeline = Timeline.of(trace_of(spans=[kernel(f"k{at}", 10 * at, 7) for at in range(20)]))
    flows = timeline.flows
    number = flows.number_of(shown(timeline, "k19"))
    assert number is not None

    path = flows._finder.to(number, most=5)

    assert path.is_cut
    assert path.spans_ns == sum(each.ns for each in path.parts) == 197 - 150


def test_spans_that_begin_together_end_the_path_and_no_loop_is_walked() -> None:
    spans = [call("a", 0, 0), call("b", 0, 0), call("c", 0, 5)]

    for label in "abc":
        assert [name for name, *_ in path_to(Timeline.of(trace_of(spans=spans)), label)] == [label]


@pytest.mark.parametrize(
    ("depths", "found"),
    [([], ()), ([0, 1, 2, 0], (range(3), range(3), range(3), range(3, 4)))],
)
def test_sub_lanes_go_with_the_lane_above(depths: list[int], found: tuple[range, ...]) -> None:
    assert families(depths) == found


def check_paths(run: Looked) -> int:
    """Stretches follow each other without a gap or an overlap, from the first to the last."""
    draw, flows = random.Random(run.trace.name), run.timeline.flows
    total = int(flows.numbers.first[-1])
    for number in (draw.randrange(total) for _ in range(NUM_PATHS if total else 0)):
        path = flows.path_of_number(number)
        assert [each.end_ns for each in path.parts[:-1]] == [
            each.start_ns for each in path.parts[1:]
        ], (run.trace.name, number)
        assert sum(each.ns for each in path.parts) == path.spans_ns
        spot = flows.numbers.spot(number)
        assert path.parts[-1].end_ns == spot.times[1]
    return total
