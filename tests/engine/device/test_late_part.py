"""What becomes of a MIX whose parts start apart, on hardware that queues and on other hardware."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.engine.device.admission import Admission, admission
from stepscope.engine.device.dispatch_costs import Costs
from stepscope.engine.device.events import RESUME, EventLoop
from stepscope.engine.device.graphs.tasks import TaskGraph
from stepscope.engine.device.late_parts import LATE_PARTS, WAITS, LatePart, late_part
from stepscope.engine.device.run_log import Histories, Run
from stepscope.engine.device.silicon import Silicon
from stepscope.engine.device.topology import Device, Part
from stepscope.engine.scenarios.mix_admission import MixAdmission
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.engine.asked import asked
from tests.engine.device.drawn_graphs import (
    Launch,
    blocks_of,
    graph_of,
    launches,
    num_groups,
    num_threads,
    policies,
    run_of,
)
from tests.engine.recorded_once import RecordedOnce
from tests.engine.scenarios.mix_runs import cached
from tests.looped import looped
from tests.random_configurations.tables import Tables
from tests.tiers import examples, slow

T = TypeVar("T")
bounded = settings(max_examples=examples(40), deadline=None)
UNQUEUED = [each for each in LATE_PARTS if each is not WAITS]
CORRUPTS, HANGS = late_part("corrupts"), late_part("hangs")
together = st.sampled_from([admission(each) for each in ("all-free", "barrier", "reserve-group")])


def ran(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int, late: LatePart
) -> tuple[TaskGraph, Run]:
    graph = graph_of(given_launches, groups)
    return graph, run_of(graph, policy, groups, threads, late_part=late)


@slow
@bounded
@given(launches, policies, num_groups, num_threads)
def test_where_nothing_queues_no_part_waits_for_another(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int
) -> None:
    _, run = ran(given_launches, policy, groups, threads, CORRUPTS)

    for part in run.parts:
        assert part.end_ns - part.start_ns == part.task.durations_ns[part.block]


@bounded
@given(launches, together, num_groups, num_threads, st.sampled_from(UNQUEUED))
def test_policies_that_start_all_parts_together_run_as_where_hardware_queues(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int, late: LatePart
) -> None:
    graph, run = ran(given_launches, policy, groups, threads, late)
    _, queued = ran(given_launches, policy, groups, threads, WAITS)

    assert run.stall is None
    assert [(p.core.id, p.end_ns) for p in run.parts] == [
        (p.core.id, p.end_ns) for p in queued.parts
    ]
    contents = run.contents(graph.tasks)
    assert (contents is None) == (late.tiles() is None)
    if contents:
        assert contents.num_wrong_tasks == 0
        assert not contents.left.is_wrong


@bounded
@given(launches, policies, num_groups, num_threads)
def test_a_run_hangs_where_a_part_starts_while_its_mates_core_executes_another_block(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int
) -> None:
    _, run = ran(given_launches, policy, groups, threads, HANGS)

    hung = {part.mates[0] for part in run.parts if part.start_ns >= 0 > part.end_ns}
    met_another = {part.mates[0] for part in run.parts if _meets_another(part, run)}
    assert bool(run.stall) == bool(met_another)
    assert met_another <= hung


def _meets_another(part: Part, run: Run) -> bool:
    """Whether a mate has yet to start when the part does, behind a block that its core executes."""
    at_ns = part.start_ns
    late = {mate.core for mate in part.mates if not 0 <= mate.start_ns <= at_ns}
    return at_ns >= 0 and any(
        other.core in late
        and other.mates is not part.mates
        and 0 <= other.dispatch_ns <= at_ns
        and not 0 <= other.end_ns <= at_ns
        for other in run.parts
    )


@bounded
@given(launches, policies, num_groups, num_threads)
def test_what_is_computed_is_wrong_only_behind_a_tile_that_was_in_the_way(
    given_launches: list[Launch], policy: Admission, groups: int, threads: int
) -> None:
    graph, run = ran(given_launches, policy, groups, threads, CORRUPTS)

    apart = any(len({part.start_ns for part in parts}) > 1 for parts in blocks_of(run).values())
    contents = run.contents(graph.tasks)
    assert contents is not None
    assert apart or contents.num_wrong_tasks == 0
    assert contents.left.is_wrong == contents.is_spoilt == (contents.num_wrong_tasks > 0)


def record(runs: RecordedOnce, variant: str, late: str) -> Tables:
    return Tables(cached(runs, variant, late_part=late))


def outcome(runs: RecordedOnce, variant: str, late: str) -> str:
    run = runs.run("mix-admission", variant, asked({"steps": "1", "late_part": late}))
    return str(run.metrics["outcome"])


@slow
def test_overwritten_tiles_make_tokens_differ_and_nothing_slower(
    recorded_once: RecordedOnce,
) -> None:
    spoilt, sound = (record(recorded_once, each, "corrupts") for each in ("before", "after"))

    def decoded(tables: Tables) -> set[bool]:
        sampled = (row for row in tables["outputs"] if row["position"] == 1)
        return {row["digest"] == row["solo_digest"] for row in sampled}

    assert (decoded(spoilt), decoded(sound)) == ({False}, {True})
    assert spoilt["steps"][1]["dur_ns"] < sound["steps"][1]["dur_ns"]


BEFORE = {
    "waits": "served",
    "corrupts": r"served, [\d,]+ tasks wrong",
    "hangs": "stalled: .* no progress for 500 ms",
}


@slow
@looped(("late", "said"), BEFORE.items())
def test_the_outcome_says_what_the_makespan_does_not(
    recorded_once: RecordedOnce, late: str, said: str
) -> None:
    assert re.fullmatch(said, outcome(recorded_once, "before", late))


@slow
@looped("late", LATE_PARTS, ids=lambda late: late.name)
def test_a_guard_is_served_whatever_becomes_of_late_parts(
    recorded_once: RecordedOnce, late: LatePart
) -> None:
    assert outcome(recorded_once, "after", late.name) == "served"


@pytest.mark.parametrize("late", LATE_PARTS, ids=lambda late: late.name)
@pytest.mark.parametrize("published_ns", [1_350, 2_000])
def test_a_block_that_meets_nobody_takes_its_own_time_whatever_becomes_of_late_parts(
    published_ns: int, late: LatePart
) -> None:
    part, _, _ = late_by(published_ns, late)

    assert part.end_ns - part.start_ns == 20_000


def test_a_behaviour_of_late_parts_that_is_not_known_is_refused_with_all_that_are() -> None:
    with pytest.raises(ConfigError) as refused:
        late_part("explodes")

    assert refused.value.todo == f"choose one of {', '.join(each.name for each in LATE_PARTS)}"


def test_what_local_memories_hold_is_recorded_only_where_something_can_be_in_the_way(
    recorded_once: RecordedOnce,
) -> None:
    queued = record(recorded_once, "before", "waits")

    assert queued["accesses"] == []
    assert queued["outputs"][0]["digest"] is None
    assert len(record(recorded_once, "after", "corrupts")["accesses"]) > 1_000


def known(found: T | None) -> T:
    assert found is not None
    return found


def late_by(published_ns: int, late: LatePart) -> tuple[Part, Run, TaskGraph]:
    """A vector block runs on AIV0 from 350 to 1,350 ns; then a MIX of AIC and AIV0 is published."""
    graph, run, loop = TaskGraph(), Run(0), EventLoop()
    vector, mix = graph.submit("vector", 2, [1_000]), graph.submit("mix", 3, [20_000])
    silicon = Silicon(loop, Costs(), run, lambda _: None, late)
    cube, aiv = Device(1, 1).groups[0].cores[:2]
    held = Part(vector, 0, aiv, aiv.role, 0, "running", 0, [])
    held.mates.append(held)
    mates: list[Part] = []
    mates += [
        Part(mix, 0, cube, cube.role, 0, "running", 0, mates),
        Part(mix, 0, aiv, aiv.role, 0, "pending", 0, mates),
    ]
    loop.post(0, RESUME, silicon.publish, [held])
    loop.post(published_ns, RESUME, silicon.publish, mates)
    loop.run(lambda: False, None)
    for task in graph.tasks:
        task.outcome = "run"
    return mates[1], run, graph


@pytest.mark.parametrize(("published_ns", "num_wrong"), [(900, 2), (1_250, 0)])
def test_a_tile_is_overwritten_by_a_part_that_comes_before_the_block_has_ended_and_not_after(
    published_ns: int, num_wrong: int
) -> None:
    late, run, graph = late_by(published_ns, CORRUPTS)

    contents = run.contents(graph.tasks)
    assert late.start_ns == 2_160 > late.mates[0].start_ns
    assert contents is not None
    assert contents.num_wrong_tasks == num_wrong


def test_what_reads_a_wrong_result_of_an_earlier_graph_is_wrong_and_who_was_not_in_it_is_not() -> (
    None
):
    _, run, graph = late_by(900, CORRUPTS)
    histories = Histories()
    histories.add(["hit"], known(run.contents(graph.tasks)))
    following = TaskGraph()
    following.given = histories.given(["hit", "other"])
    following.submit("mix", 7, [20_000])
    following.submit("switched off", 2, [1_000], enabled=False)

    contents = known(
        run_of(following, admission("all-free"), 1, 1, late_part=CORRUPTS).contents(following.tasks)
    )
    histories.add(["hit", "other"], contents)

    assert (contents.num_wrong_tasks, contents.is_spoilt) == (1, False)
    assert [known(histories.of(each)).is_wrong for each in ("hit", "other")] == [True, False]


@slow
def test_a_request_that_got_a_wrong_token_gets_no_right_one_behind_it(tmp_path: Path) -> None:
    """One step in five has a tile overwritten, the last but one."""
    settings = {"late_part": "corrupts", "steps": "4", "requests": "2", "prompt_len": "32"}
    device = {"admission": "per-core-slot", "groups": "64"}
    out = tmp_path / "run.trace"
    MixAdmission().record("before", out, asked(settings | device))

    is_right: defaultdict[str, list[bool]] = defaultdict(list)
    for row in Tables(Trace.open(out))["outputs"]:
        is_right[row["request"]].append(row["digest"] == row["solo_digest"])
    assert set(map(tuple, is_right.values())) == {(True, True, True, False, False)}


@pytest.mark.parametrize(("published_ns", "hangs"), [(900, True), (1_250, False)])
def test_a_part_hangs_that_comes_before_the_block_has_ended_and_not_after(
    published_ns: int, hangs: bool
) -> None:
    late, _, _ = late_by(published_ns, HANGS)

    assert (late.end_ns < 0) is hangs


@slow
@pytest.mark.parametrize("fault", ["late-part-overwrites-tile", "late-part-hangs"])
def test_the_faults_are_the_guard_without_its_look_at_the_aivs(fault: str) -> None:
    run = MixAdmission().record("after", None, asked({"steps": "1", "fault": fault}))

    assert run.metrics["policy"] == "all-free"
    assert int(run.metrics["admission_conflicts"]) > 0
