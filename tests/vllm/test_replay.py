"""A replay on the scheduler that is installed decides at every step what a whole vLLM decided."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stepscope import Trace
from stepscope.analyzers.replay.rank_by_rank import Replay, replay
from stepscope.app.replay.launch import run as launched
from tests.vllm.runs import Run
from tests.vllm.situations import IN_PROCESS


@pytest.fixture(params=[each.__name__ for each in IN_PROCESS])
def run(request: pytest.FixtureRequest, in_process: dict[str, Run]) -> Run:
    return in_process[request.param]


def replayed(trace: Trace, folder: Path, **settings: object) -> Replay:
    out = folder / "replay.trace"
    return replay(
        trace, "vllm", settings, out, lambda script: launched(script, sys.executable, out)
    )


def test_the_same_version_decides_the_same_at_every_step(run: Run, tmp_path: Path) -> None:
    found = replayed(run.trace, tmp_path)

    assert [each.compared and each.compared.divergence for each in found.ranks] == [None]
    assert found.replayed.num_rows("steps") == run.trace.num_rows("steps")


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
