"""A replay on the scheduler that is installed decides at every step what a whole vLLM decided.

`STEPSCOPE_VLLM_PYTHONS` names Pythons of other versions of vLLM, separated as paths are: of each it
is told where it diverges.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from stepscope import Trace
from stepscope.analyzers.replay.rank_by_rank import Replay, replay
from stepscope.app.replay.launch import run as launched
from stepscope.ingest.replay.script import ADD, Asked, Call, Script, StepCosts
from tests.conftest import ROOT
from tests.vllm.running.serving import serving
from tests.vllm.runs import Run
from tests.vllm.situations import IN_PROCESS
from tests.vllm.tiny_llama import words

OTHERS = [each for each in os.environ.get("STEPSCOPE_VLLM_PYTHONS", "").split(os.pathsep) if each]
GROUPS = {
    "a window": [
        {"spec": "FullAttentionSpec"}, {"spec": "SlidingWindowSpec", "sliding_window": 64},
    ],
    "two windows and chunks": [
        {"spec": "SlidingWindowSpec", "sliding_window": 64},
        {"spec": "ChunkedLocalAttentionSpec", "attention_chunk_size": 128},
        {"spec": "FullAttentionSpec"},
    ],
    "a window alone": [{"spec": "SlidingWindowSpec", "sliding_window": 64}],
}  # fmt: skip


@pytest.fixture(params=[each.__name__ for each in IN_PROCESS])
def run(request: pytest.FixtureRequest, in_process: dict[str, Run]) -> Run:
    return in_process[request.param]


def replayed(
    trace: Trace, folder: Path, python: str = sys.executable, **settings: object
) -> Replay:
    out = folder / "replay.trace"
    return replay(trace, "vllm", settings, out, lambda script: launched(script, python, out))


def assert_same(found: Replay, trace: Trace, num_ranks: int = 1) -> None:
    assert [each.compared and each.compared.divergence for each in found.ranks] == (
        [None] * num_ranks
    )
    assert found.replayed.num_rows("steps") == trace.num_rows("steps")


def test_the_same_version_decides_the_same_at_every_step(run: Run, tmp_path: Path) -> None:
    assert_same(replayed(run.trace, tmp_path), run.trace)


def test_each_rank_decides_the_same_at_every_step(model: Path, tmp_path: Path) -> None:
    with serving(
        model, tmp_path / "ranks", "--shutdown-timeout", "20", "--data-parallel-size", "2",
        enable_prefix_caching=True,
    ) as server:  # fmt: skip
        server.burst([
            {"number": number, "prompt": words(20 + number * 31 % 100, number * 50),
             "max_tokens": 20 + number * 17 % 60, "leave_after": 5 if number % 9 == 4 else None}
            for number in range(24)
        ])  # fmt: skip
        server.stop()
    trace = server.run.trace

    assert_same(replayed(trace, tmp_path), trace, num_ranks=2)


@pytest.mark.parametrize("is_cached", [False, True], ids=["uncached", "cached"])
@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_what_a_scheduler_decides_of_several_kv_groups_it_decides_again(
    groups: list[dict[str, object]], is_cached: bool, tmp_path: Path
) -> None:
    trace = served_on_groups(groups, tmp_path / "recorded.trace", is_cached=is_cached)

    assert_same(replayed(trace, tmp_path), trace)
    preempted = trace.sql("select count(*) from lifecycle where event = 'preempt'").item()
    assert preempted > 0


def served_on_groups(groups: list[dict[str, object]], out: Path, *, is_cached: bool) -> Trace:
    """A run of the real scheduler, with what steps take made up, on these KV cache groups."""
    config = {
        "max_num_seqs": 8, "max_num_batched_tokens": 128, "max_model_len": 512, "block_size": 32,
        "num_blocks": 12 * len(groups), "enable_prefix_caching": is_cached,
        "kv_cache_groups": groups, "hash_block_size": 32,
    }  # fmt: skip
    asked = tuple(
        Asked(
            f"r{number}", 60 + number * 37 % 150, 30 + number * 13 % 60, number * 4_000_000,
            contents=(0, 1) if number % 3 == 0 else (), num_outputs=30 + number * 13 % 60,
        )
        for number in range(16)
    )  # fmt: skip
    calls = tuple(Call(ADD, each.arrival_ns, request=each.request) for each in asked)
    costs = StepCosts(1_000_000, 10_000, 50_000, 100)
    launched(Script("vllm", config, asked, calls, costs=costs), sys.executable, out)
    return Trace.open(out)


def test_another_setting_is_another_batch_from_some_step_on(
    in_process: dict[str, Run], tmp_path: Path
) -> None:
    trace = in_process["crowd"].trace

    found = replayed(trace, tmp_path, max_num_seqs=2)

    (rank,) = found.ranks
    assert rank.compared is not None
    assert rank.compared.divergence is not None
    assert not rank.said["is_stuck"]
    ended = found.replayed.sql("select count(*) from lifecycle where event = 'finish'")
    assert ended.item() == trace.sql("select count(*) from lifecycle where event = 'finish'").item()


@pytest.mark.parametrize("python", OTHERS)
@pytest.mark.parametrize("name", ["vllm_crowd", "vllm_prefixes"])
def test_another_version_decides_the_same_or_is_said_where_it_does_not(
    name: str, python: str, tmp_path: Path
) -> None:
    trace = Trace.open(ROOT / "sample_traces" / f"{name}.trace")

    found = replayed(trace, tmp_path, python)

    (rank,) = found.ranks
    assert rank.compared is not None
    divergence = rank.compared.divergence
    if name == "vllm_prefixes" and minor(rank.said["version"]) < 32:
        assert divergence is not None
        assert (divergence.step, divergence.stage) == (1, "batch")
        assert [row["num_tokens"] for row in divergence.recorded] == [111]
        assert [row["num_tokens"] for row in divergence.replayed] == [48]
    ended = found.replayed.sql("select count(*) from lifecycle where event = 'finish'")
    assert ended.item() == trace.sql("select count(*) from lifecycle where event = 'finish'").item()


def minor(version: str) -> int:
    """The second number of a version: 32 of 0.32.0."""
    return int(version.split(".")[1])
