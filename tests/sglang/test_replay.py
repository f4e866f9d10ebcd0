"""A replay on SGLang's scheduler decides at every step what a whole SGLang decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.replay.rank_by_rank import replay
from stepscope.app.replay.launch import run as launched
from stepscope.ingest.trace import Trace
from tests.sglang.test_real_scheduler import PYTHON, run

Run = tuple[Trace, list[dict[str, Any]]]
recorded = run
"""The fixture of the recorded situations: each is recorded anew for this module."""

pytestmark = pytest.mark.skipif(not PYTHON, reason="STEPSCOPE_SGLANG_PYTHON names no SGLang")


def test_the_same_version_decides_the_same_at_every_step(run: Run, tmp_path: Path) -> None:
    trace, truth = run
    out = tmp_path / "replay.trace"

    found = replay(trace, "sglang", {}, out, lambda script: launched(script, PYTHON, out))

    (rank,) = found.ranks
    assert rank.compared is not None
    assert rank.compared.divergence is None
    assert found.replayed.num_rows("steps") == trace.num_rows("steps") == len(truth)
    told = "select request, event, num_generated from lifecycle order by ts_ns, 1, 2"
    assert found.replayed.sql(told).equals(trace.sql(told))


def test_another_pool_is_another_batch_from_some_step_on(run: Run, tmp_path: Path) -> None:
    trace, _ = run
    out = tmp_path / "replay.trace"
    settings = {"max_total_tokens": 96}

    found = replay(trace, "sglang", settings, out, lambda script: launched(script, PYTHON, out))

    (rank,) = found.ranks
    assert rank.compared is not None
    assert rank.compared.divergence is not None
    assert not rank.said["is_stuck"]
