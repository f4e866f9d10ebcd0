"""The graphs of traces run again: our own, as they were recorded, and those of a real runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.engine.device.admission import ADMISSIONS
from stepscope.engine.runs.scenario import RunResult
from stepscope.engine.scenarios.mix_admission import MixAdmission
from stepscope.engine.workloads.graph_files import graphs_in
from stepscope.engine.workloads.graph_traces import graphs_of
from stepscope.engine.workloads.graphs import Graph, Graphs
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import Row, mix, part, task
from tests.conftest import ROOT
from tests.engine.asked import asked
from tests.engine.recorded_once import RecordedOnce
from tests.random_configurations.tables import Tables
from tests.tiers import sampled, slow
from tests.traces import trace_of

SCENARIO = MixAdmission()
REAL = ROOT.parent / "shared" / "data" / "swimlane"
POLICIES = [each.name for each in ADMISSIONS]
EDGE = {"from_task": 1, "to_task": 2, "ts_ns": 0}


def graphs(*tasks: Row, **more: Any) -> Graphs:
    return graphs_of(
        trace_of(tasks=[{"ts_ns": 0, "outcome": "run"} | row for row in tasks], **more)
    )


def times(given: Graphs) -> list[list[int]]:
    return [list(launch.durations_ns) for graph in given.graphs for launch in graph.launches]


@pytest.mark.parametrize(
    "policy", sampled(["before", "after", "uniform", "reserve-group"], ["before", "after"])
)
def test_a_recorded_run_run_again_under_its_own_policy_is_the_same_run(
    recorded_once: RecordedOnce, tmp_path: Path, policy: str
) -> None:
    settings = {"steps": "1", "groups": "5", "workload": "moe-layer"}
    first = recorded_once.run("mix-admission", policy, asked(settings)).path
    assert first is not None
    SCENARIO.record(policy, tmp_path / "again.trace", asked({}, workload=first))

    told, retold = (Tables(Trace.open(path)) for path in (first, tmp_path / "again.trace"))
    assert list(_blocks(told)) == list(_blocks(retold))
    assert retold.config["settings"]["groups"] == 5
    assert retold.config["graph"]["inferred"] == []


def _blocks(tables: Tables) -> Iterator[tuple[Any, ...]]:
    """Which block ran on which core, from when to when in its step."""
    began = {row["step"]: row["ts_ns"] for row in tables["steps"]}
    for row in tables["core_spans"]:
        since = began[row["step"]]
        yield (
            row["step"], row["task"], row["block"], row["core"], row["slot"],
            row["dispatch_ns"] - since, row["ts_ns"] - since, row["end_ns"] - since,
        )  # fmt: skip


def test_parts_that_end_together_have_met_and_their_time_is_from_the_last_start() -> None:
    spans = mix(1, {0: 1_000, 1: 4_000, 2: 1_000}, ended=9_000, dispatched=1_000)

    assert times(graphs(task(1, "qk_pv", shape="MIX"), core_spans=spans)) == [[5_000]]


def test_of_parts_that_end_apart_the_longest_is_taken_and_that_is_said() -> None:
    spans = [part(1, 0, 0, 9_000, shape="MIX"), part(1, 1, 0, 3_000, shape="MIX")]
    found = graphs(task(1, "qk_pv", shape="MIX", core_mask=3), core_spans=spans)

    assert times(found) == [[9_000]]
    assert "1 blocks whose parts ended apart are taken to last as their longest part" in (
        found.inferred
    )


def test_blocks_of_unknown_length_last_as_others_of_their_kernel_then_of_their_shape() -> None:
    spans = [part(1, 1, 0, 5_000), part(2, 2, 0, 7_000), part(2, 4, 0, None, block=1)]
    found = graphs(
        task(1, "push", 3), task(2, "act", 2), task(3, "gather"), task(4, "gate", shape="AIC"),
        core_spans=spans,
    )  # fmt: skip

    assert times(found) == [[5_000] * 3, [7_000] * 2, [5_000], [10_000]]
    assert found.inferred[2:] == (
        "3 blocks of unknown length are taken to last as others of their kernel do",
        "1 blocks of unknown length are taken to last as others of their shape do",
        "1 blocks of unknown length are taken to last 10,000 ns each",
    )


def test_no_dependencies_are_said_to_be_none_that_is_recorded() -> None:
    lone = graphs(task(1, "a"), task(2, "b"))
    bound = graphs(task(1, "a"), task(2, "b"), task_edges=[EDGE, EDGE])
    lost = graphs(task(2, "b"), task_edges=[EDGE])

    none = "no dependency is recorded: no task waits for another"
    assert none in lone.inferred
    assert none not in bound.inferred
    assert [launch.after for launch in _launches(bound)] == [(), (0,)]
    assert "1 dependencies on tasks that are not a listed are left out" in lost.inferred


def _launches(given: Graphs) -> Any:
    (graph,) = given.graphs
    return graph.launches


def test_tasks_are_submitted_in_the_order_in_which_they_were() -> None:
    found = graphs(task(7, "late", ts_ns=9), task(8, "early", ts_ns=3))

    assert [launch.spec.name for launch in _launches(found)] == ["early", "late"]


def test_a_task_that_was_skipped_is_skipped_again_and_a_dummy_is_one() -> None:
    found = graphs(task(1, "gate", outcome="skipped"), task(2, "sync", shape="DUMMY"))

    assert [launch.spec.is_enabled for launch in _launches(found)] == [False, True]
    assert [launch.mask for launch in _launches(found)] == [2, 0]


def test_a_mix_that_does_not_name_its_cores_needs_all_three_and_that_is_said() -> None:
    found = graphs(task(1, "qk_pv", shape="MIX", core_mask=None))

    assert _launches(found)[0].mask == 7
    assert "1 MIX tasks that do not name their cores are taken to need all three" in found.inferred


def test_times_that_are_an_order_alone_are_no_lengths() -> None:
    found = graphs(task(1, "a"), core_spans=[part(1, 1, 3, 5)], tables={"core_spans": "ordered"})

    assert times(found) == [[10_000]]
    assert found.recorded_ns == (None,)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"task_edges": [EDGE, {**EDGE, "from_task": 2, "to_task": 1}]}, "wait for each other"),
        ({"task_edges": [{**EDGE, "from_task": 2}]}, "wait for each other: '2' before '2'"),
    ],
    ids=["a cycle", "a task that waits for itself"],
)
def test_a_damaged_graph_is_refused_in_one_line(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        graphs(task(1, "a"), task(2, "b"), **more)


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([task(1, "a"), task(1, "b")], "2 tasks are called '1'"),
        ([task(1, "a"), task(1, "b", rank=1)], "tasks of several ranks"),
        ([task(1, "a", 1 << 30)], "more than 1,000,000 blocks"),
    ],
    ids=["twice", "two ranks", "a billion blocks"],
)
def test_tasks_that_are_no_graph_are_refused_in_one_line(tasks: list[Row], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        graphs(*tasks)


# Files of the real runtime, whose kernels sleep on the cores of a machine that simulates a device.

SWIMLANES = sorted(path.name for path in REAL.glob("*")) or ["none"]
real = pytest.mark.skipif(not REAL.is_dir(), reason="no shared/: swimlanes of the real runtime")


def replayed(name: str, policy: str, out: Path | None = None, **settings: str) -> RunResult:
    return SCENARIO.record(policy, out, asked(settings, workload=_real(name)))


def _real(name: str) -> Graphs:
    found = graphs_in(REAL / name)
    assert found is not None
    return found


@slow
@real
@pytest.mark.parametrize("name", sampled(SWIMLANES, SWIMLANES[:1]))
def test_a_real_swimlanes_graph_runs_under_every_policy(tmp_path: Path, name: str) -> None:
    (graph,) = _real(name).graphs
    theirs = _ran(Tables(Trace.open(REAL / name)))
    for policy in POLICIES:
        metrics = replayed(name, policy, tmp_path / policy).metrics
        trace = Trace.open(tmp_path / policy)

        assert theirs == _ran(Tables(trace)), policy
        assert trace.manifest.config["settings"]["groups"] == 8, policy
        fired = {each.code for each in check(trace).findings}
        assert not fired & {"COR002", "COR007", "COR010", "COR011", "COR012", "COR013"}, policy
        least_ns = max(_critical_ns(graph), _work_ns(graph) / 8)
        assert float(metrics["makespan_us"]) * 1_000 >= least_ns, policy


def _ran(tables: Tables) -> list[tuple[str, str, int, bool]]:
    return sorted(
        (row["name"] or "", row["shape"], row["num_blocks"], row["outcome"] == "skipped")
        for row in tables["tasks"]
    )


def _critical_ns(graph: Graph) -> int:
    """The longest chain of tasks that wait for each other: no policy is faster."""
    ends: list[int] = []
    for launch in graph.launches:
        since = max((ends[place] for place in launch.after), default=0)
        runs = max(launch.durations_ns) if launch.spec.is_enabled else 0
        ends.append(since + runs)
    return max(ends)


def _work_ns(graph: Graph) -> int:
    """What the AICs have to compute in all."""
    return sum(sum(launch.durations_ns) for launch in graph.launches if launch.mask & 1)


@real
def test_of_a_real_mixed_graph_the_guard_splits_no_block_and_is_faster_than_what_was_reported() -> (
    None
):
    rows = {policy: replayed("TestMixedExample_case1", policy).metrics for policy in POLICIES}

    conflicts = {policy for policy, row in rows.items() if row["admission_conflicts"]}
    assert conflicts == {"aic-free", "all-idle-or-pending", "per-core-slot"}
    assert float(rows["all-free"]["makespan_us"]) < 0.7 * float(rows["aic-free"]["makespan_us"])


@real
@pytest.mark.parametrize("name", ["TestQwen2L_StressBatch16Seq3500", "TestBenchmarkBgemm_Case1"])
def test_where_kernels_take_nearly_all_time_the_makespan_is_near_that_of_the_file(
    name: str,
) -> None:
    (recorded_ns,) = _real(name).recorded_ns

    assert recorded_ns is not None
    assert float(replayed(name, "uniform").metrics["makespan_us"]) * 1_000 == pytest.approx(
        recorded_ns, rel=0.04
    )


@real
def test_what_a_real_swimlane_does_not_say_is_said() -> None:
    assert _real("TestMixedExample_case1").inferred == (
        "no dependency is recorded: no task waits for another",
        "12 blocks whose parts ended apart are taken to last as their longest part",
        "20 tasks that do not say so are taken not to start all at once",
    )
