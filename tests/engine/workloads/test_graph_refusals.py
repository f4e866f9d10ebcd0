"""A task graph that makes no sense is refused in one line that says what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope.engine.workloads.graph_files import graphs_in
from stepscope.ingest.errors import ConfigError
from tests.engine.workloads.graph_runs import ATTEND, PUSH, graph, written

WRONG = {
    "a cycle": (
        graph({**PUSH, "after": ["qk_pv"]}, {**ATTEND, "after": ["push"]}),
        "tasks wait for each other: 'push' before 'qk_pv' before 'push'",
    ),
    "a task that waits for itself": (
        graph({**PUSH, "after": ["push"]}), "tasks wait for each other: 'push' before 'push'"
    ),
    "a cycle through a barrier": (
        graph({**PUSH, "after": ["qk_pv"]}, {"id": "b", "shape": "BARRIER"}, ATTEND),
        "tasks wait for each other",
    ),
    "an unknown shape": (graph({**PUSH, "shape": "GPU"}), r"'GPU' - at `\$.tasks\[0\].shape`"),
    "no shape": (graph({"id": "push", "dur_ns": 1}), "missing required field `shape`"),
    "no id": (graph({"shape": "AIV", "dur_ns": 1}), "missing required field `id`"),
    "an empty id": (graph({**PUSH, "id": ""}), "length >= 1"),
    "an id twice": (graph(PUSH, PUSH), "2 tasks are called 'push'"),
    "an id that is nowhere": (
        graph({**PUSH, "after": ["pull"]}), "'push' waits for 'pull', which is not there"
    ),
    "a field that nobody knows": (graph({**PUSH, "blocks": 3}), "unknown field `blocks`"),
    "no time": (graph({"id": "push", "shape": "AIV"}), "'push' has no dur_ns"),
    "a time below zero": (graph({**PUSH, "dur_ns": -1}), ">= 0"),
    "a time of a year": (graph({**PUSH, "dur_ns": 10**16}), "<= 1000000000000"),
    "a time with a fraction": (graph({**PUSH, "dur_ns": 0.5}), "Expected `int | array`"),
    "no times at all": (graph({"id": "a", "shape": "AIV", "dur_ns": []}), "length >= 1"),
    "other numbers of blocks": (
        graph({**ATTEND, "num_blocks": 3}), "'qk_pv' has 3 blocks and 2 times"
    ),
    "no blocks": (graph({**PUSH, "num_blocks": 0}), ">= 1"),
    "too many blocks": (graph({**PUSH, "num_blocks": 10**9}), "<= 1000000"),
    "too many blocks together": (
        graph({**PUSH, "num_blocks": 10**6}, {**PUSH, "id": "b"}), "more than 1,000,000 blocks"
    ),
    "a MIX of one core": (graph({**ATTEND, "core_mask": 4}), "a MIX of core_mask 4"),
    "a mask of four cores": (graph({**ATTEND, "core_mask": 15}), "<= 7"),
    "a mask of an AIV": (graph({**PUSH, "core_mask": 6}), "of shape AIV, which runs on one core"),
    "a barrier with blocks": (
        graph({"id": "b", "shape": "BARRIER", "num_blocks": 2}), "BARRIER, which runs on no core"
    ),
    "no tasks": (graph(), "length >= 1"),
    "tasks that are not a list": ({"tasks": "push"}, "Expected `array`"),
    "a task that is not an object": ({"tasks": [7]}, "Expected `object`"),
    "groups that are none": (graph(PUSH, groups=0), ">= 1"),
    "half a file": (json.dumps(graph(PUSH))[:-9], "is not JSON"),
    "no text": ('{"tasks": [{"id": "\udc80"}]}'.encode(errors="surrogatepass"), "not UTF-8|JSON"),
    "very deep": ('{"tasks": ' + "[" * 100_000, "Expected `object`"),
}  # fmt: skip


def test_a_graph_that_makes_no_sense_is_refused_in_one_line_that_says_why(tmp_path: Path) -> None:
    for what, (content, message) in WRONG.items():
        path = written(tmp_path, "" if isinstance(content, bytes) else content)
        if isinstance(content, bytes):
            path.write_bytes(content)

        with pytest.raises(ConfigError, match=message) as refused:
            graphs_in(path)

        assert refused.value.where == str(path), what
        assert "\n" not in str(refused.value), what
        assert len(str(refused.value)) < 1_000, what


def test_a_long_cycle_is_named_by_its_beginning(tmp_path: Path) -> None:
    ring = [{**PUSH, "id": f"t{i}", "after": [f"t{(i + 1) % 5_000}"]} for i in range(5_000)]

    with pytest.raises(ConfigError, match=r"before \.\.\.") as refused:
        graphs_in(written(tmp_path, graph(*ring)))

    assert len(str(refused.value)) < 400
