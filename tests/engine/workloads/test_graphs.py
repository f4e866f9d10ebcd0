"""Task graphs of one's own: what a file may say, and that what it says is what is run."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.engine.device.graphs.barriers import AUTHOR_BARRIERS
from stepscope.engine.device.late_parts import LATE_PARTS
from stepscope.engine.workloads.graph_files import graphs_in
from stepscope.engine.workloads.graphs import GraphSpec, TaskSpec, graph_of
from stepscope.ingest.errors import ConfigError, StepscopeError
from tests.conftest import ROOT
from tests.engine.asked import asked
from tests.engine.workloads.graph_runs import ATTEND, PUSH, SCENARIO, graph, run, written
from tests.looped import looped
from tests.random_configurations.tables import Row
from tests.tiers import examples, slow


def test_the_tasks_of_a_file_run_with_their_shapes_blocks_times_and_dependencies(
    tmp_path: Path,
) -> None:
    combine = {"id": "combine", "shape": "AIV", "dur_ns": 4_000, "after": ["push", "qk_pv"]}
    tables = run(tmp_path, graph(PUSH, ATTEND, combine, groups=4, threads=2))

    told = [
        (row["name"], row["shape"], row["num_blocks"], row["outcome"]) for row in tables["tasks"]
    ]
    assert told == [
        ("push", "AIV", 4, "run"), ("qk_pv", "MIX", 2, "run"), ("combine", "AIV", 1, "run"),
    ]  # fmt: skip
    edges = {(row["from_task"], row["to_task"], row["source"]) for row in tables["task_edges"]}
    assert edges == {(0, 2, "explicit"), (1, 2, "explicit")}
    lengths = {
        (row["task"], row["block"]): row["end_ns"] - row["ts_ns"] for row in tables["core_spans"]
    }
    assert lengths == {**dict.fromkeys([(0, b) for b in range(4)], 9_000),
                       (1, 0): 15_000, (1, 1): 16_000, (2, 0): 4_000}  # fmt: skip


def test_a_graph_has_a_step_and_no_requests(tmp_path: Path) -> None:
    tables = run(tmp_path, graph(PUSH))

    (step,) = tables["steps"]
    assert (step["kind"], step["executed_path"]) == ("dummy", "task graph")
    assert (step["num_prefill_reqs"], step["num_decode_reqs"]) == (0, 0)
    assert tables["lifecycle"] == tables["batch_rows"] == tables["outputs"] == []


def test_the_device_is_the_one_of_the_file_unless_another_is_asked_for(tmp_path: Path) -> None:
    given_graph = graph(PUSH, groups=3, threads=2)

    assert run(tmp_path, given_graph).config["settings"]["groups"] == 3
    (tmp_path / "again").mkdir()
    asked_for = run(tmp_path / "again", given_graph, groups="5").config["settings"]
    assert (asked_for["groups"], asked_for["threads"]) == (5, 2)


def test_a_task_may_stand_before_one_that_it_waits_for(tmp_path: Path) -> None:
    tables = run(tmp_path, graph({**ATTEND, "after": ["push"]}, PUSH))

    assert [row["name"] for row in tables["tasks"]] == ["push", "qk_pv"]
    assert [(row["from_task"], row["to_task"]) for row in tables["task_edges"]] == [(0, 1)]


def test_a_barrier_waits_for_all_before_it_and_all_behind_it_wait_for_it(tmp_path: Path) -> None:
    again = {**PUSH, "id": "push again"}
    tables = run(tmp_path, graph(PUSH, {"id": "drain", "shape": "BARRIER"}, ATTEND, again))

    names = {row["task"]: row["name"] for row in tables["tasks"]}
    waits = {(names[row["from_task"]], names[row["to_task"]]) for row in tables["task_edges"]}
    assert waits == {("push", "drain"), ("drain", "qk_pv"), ("drain", "push again")}


def test_what_is_not_enabled_retires_without_a_core(tmp_path: Path) -> None:
    tables = run(tmp_path, graph({**PUSH, "is_enabled": False}, ATTEND))

    assert [row["outcome"] for row in tables["tasks"]] == ["skipped", "run"]
    assert {row["task"] for row in tables["core_spans"]} == {1}


def test_a_mix_may_need_two_cores_only(tmp_path: Path) -> None:
    tables = run(tmp_path, graph({**ATTEND, "core_mask": 5}))

    assert {row["core_kind"] for row in tables["core_spans"]} == {"AIC", "AIV1"}


def test_a_file_may_be_gzipped_and_begin_with_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "graph.json.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + json.dumps(graph(PUSH)).encode()))

    graphs = graphs_in(path)

    assert graphs is not None
    assert graphs.source == "graph.json.gz"
    assert len(graphs.graphs) == 1


def test_many_barriers_over_many_tasks_are_few_dependencies(tmp_path: Path) -> None:
    tasks: list[dict[str, Any]] = []
    for i in range(2_000):
        tasks += [{**PUSH, "id": f"t{i}"}, {"id": f"b{i}", "shape": "BARRIER"}]

    graphs = graphs_in(written(tmp_path, graph(*tasks)))

    assert graphs is not None
    assert sum(len(launch.after) for launch in graphs.graphs[0].launches) < 8_000


@looped("name", ["steps", "requests", "prompt_len", "workload"])
def test_what_is_about_requests_is_refused_beside_a_graph(tmp_path: Path, name: str) -> None:
    value = "moe-layer" if name == "workload" else "2"

    with pytest.raises(ConfigError, match=f"{name} is about requests"):
        run(tmp_path, graph(PUSH), **{name: value})


@slow
def test_requests_of_ones_own_are_no_graph(tmp_path: Path) -> None:
    requests = {"requests": [{"id": "a", "arrival_ns": 0, "prompt_len": 9, "max_tokens": 2}]}

    assert graphs_in(written(tmp_path, requests)) is None
    assert len(run(tmp_path, requests)["lifecycle"]) > 0


def test_a_name_is_no_markup_and_no_control(tmp_path: Path) -> None:
    hostile = "\x1b[31m<script>[bold]"
    tables = run(tmp_path, graph({**PUSH, "name": hostile}))

    assert tables["tasks"][0]["name"] == hostile


jsons = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
FIELDS = [*GraphSpec.__struct_fields__, "id", "shape", "num_blocks", "dur_ns", "after", "core_mask"]


@slow
@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(
        st.dictionaries(st.sampled_from(FIELDS), jsons | st.sampled_from(["a", "AIV", 1, ["a"]])),
        max_size=3,
    )
    | jsons
)
def test_whatever_the_tasks_are_they_make_a_graph_or_one_clear_error(tasks: object) -> None:
    raw = json.dumps({"tasks": tasks}, default=str).encode()
    with suppress(ConfigError, msgspec.DecodeError):
        graph_of(msgspec.json.decode(raw, type=GraphSpec))


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Any]:
    """Graphs without a cycle, in any order, of tasks that any device and policy can run."""
    tasks: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 14))):
        shape = draw(st.sampled_from(["AIC", "AIV", "AIV", "MIX", "MIX", "DUMMY", "BARRIER"]))
        task: dict[str, Any] = {"id": f"t{number}", "shape": shape}
        if shape not in {"DUMMY", "BARRIER"}:
            task["dur_ns"] = draw(st.lists(st.integers(0, 30_000), min_size=1, max_size=6))
            task["is_enabled"] = draw(st.sampled_from([True] * 5 + [False]))
        if shape == "MIX":
            task["core_mask"] = draw(st.sampled_from([3, 5, 6, 7, 7]))
        if tasks:
            ids = st.sampled_from([each["id"] for each in tasks])
            task["after"] = draw(st.lists(ids, max_size=2))
        tasks.append(task)
    if not any(task["shape"] == "BARRIER" for task in tasks):
        tasks = draw(st.permutations(tasks))
    return graph(*tasks, groups=draw(st.integers(1, 5)), threads=draw(st.integers(1, 3)))


@settings(max_examples=examples(60), deadline=None)
@given(
    graphs(), st.sampled_from(SCENARIO.variants),
    st.sampled_from([each.name for each in LATE_PARTS]),
    st.sampled_from([each.name for each in AUTHOR_BARRIERS]),
)  # fmt: skip
def test_every_graph_ends_under_every_policy_in_the_order_of_its_dependencies(
    tmp_path_factory: pytest.TempPathFactory,
    given_graph: dict[str, Any],
    variant: str,
    late_part: str,
    barriers: str,
) -> None:
    folder = tmp_path_factory.mktemp("graph")
    tables = run(folder, given_graph, variant, late_part=late_part, author_barriers=barriers)

    spec = {task["id"]: task for task in given_graph["tasks"]}
    rows = {row["task"]: row for row in tables["tasks"]}
    if late_part != "hangs":
        assert {row["outcome"] for row in rows.values()} <= {"run", "skipped", "dummy"}
    times = _times(tables["core_spans"])
    by_name = {row["name"]: row["task"] for row in rows.values()}
    for name, task in spec.items():
        for before in task.get("after", ()):
            ends = times[by_name[before]][1]
            starts = times[by_name[name]][0]
            assert ends is None or starts is None or ends <= starts


def _times(spans: list[Row]) -> dict[int, tuple[int | None, int | None]]:
    """When the first block of each task began, and when the last one ended, where all did."""
    times: dict[int, tuple[int | None, int | None]] = defaultdict(lambda: (None, None))
    for row in spans:
        began, ended = times[row["task"]]
        first = row["ts_ns"] if began is None else min(began, row["ts_ns"])
        last = None if row["end_ns"] is None else max(ended or 0, row["end_ns"])
        times[row["task"]] = first, last
    return times


def test_the_example_of_the_documents_shows_what_a_policy_does(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, flags=re.DOTALL)

    conflicts = {
        variant: SCENARIO.record(
            variant, None, asked({}, workload=written(tmp_path, example))
        ).metrics["admission_conflicts"]
        for variant in ("before", "after")
    }

    assert conflicts == {"before": 1, "after": 0}


def test_every_field_of_a_task_is_in_the_documents() -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")

    listed = re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE)
    assert {*TaskSpec.__struct_fields__} <= {*listed}


def test_a_folder_that_is_no_trace_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(StepscopeError, match="empty"):
        SCENARIO.record("after", None, asked({}, workload=tmp_path / "empty"))
