"""A replay serves the requests of a measured run of vLLM as fast as they were served."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vllm.judging.measured import PUBLISHED, REQUESTS, replayed, table

WITHIN = {"ttft": {"mean": 0.10, "median": 0.10, "p99": 0.20},
          "tpot": {"mean": 0.05, "median": 0.05, "p99": 0.10}}  # fmt: skip


@pytest.mark.skipif(not REQUESTS.exists(), reason="the folder ../shared/foreign is absent")
def test_ttft_and_tpot_of_a_measured_run_are_replayed_within_a_tenth(tmp_path: Path) -> None:
    found = replayed(tmp_path)

    assert found.served.num_requests == 200
    off = {
        (measure, each): found.served.error(measure, each)
        for measure, limits in WITHIN.items()
        for each, most in limits.items()
        if (error := found.served.error(measure, each)) is None or abs(error) > most
    }
    assert off == {}
    assert len(list(table(found))) == 2 + len(PUBLISHED)
