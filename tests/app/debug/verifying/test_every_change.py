"""Behind every recorded change the state is what the engine held just then."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.engine.scenarios import Options
from tests.app.debug.verifying.every_change import differences
from tests.replays import SMALL, Run, runs
from tests.tiers import sampled

FEW = Options(settings={"requests": "6", "num_kv_blocks": "9", "max_tokens": "70"})
SHORT = Options(settings={"requests": "4", "max_tokens": "4", "prompt_len": "300"})
RUNS = {str(run): run for run in runs(SMALL)} | {
    "data-parallel": Run("mixed-batches", "data-parallel", SHORT),
    "preempted": Run("fcfs-preemption", "before", FEW),
}


@pytest.mark.parametrize(
    "name",
    sampled(
        [
            "preempted",
            "fcfs-preemption after with too-long-is-held",
            "fcfs-preemption after with executor-dies",
            "slot-recycling after",
            "ep-multiplexing after",
            "data-parallel",
        ],
        ["preempted", "slot-recycling after"],
    ),
)
def test_behind_every_change_the_state_is_what_the_engine_held(name: str, tmp_path: Path) -> None:
    assert differences(RUNS[name], tmp_path) == []
