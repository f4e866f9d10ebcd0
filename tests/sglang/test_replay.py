"""A replay on SGLang's scheduler decides at every step what a whole SGLang decided."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.replay.rank_by_rank import replay
from stepscope.app.replay.launch import run as launched
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT

PYTHON = sys.executable
SITUATIONS: dict[str, dict[str, Any]] = {
    "a small pool": {"max_total_tokens": 128},
    "chunks": {
        "max_total_tokens": 160, "chunked_prefill_size": 16, "enable_mixed_chunk": True,
        "schedule_policy": "lpm",
    },
    "retractions": {
        "max_total_tokens": 200, "schedule_policy": "lpm", "schedule_conservativeness": 0.01,
    },
    "priorities": {
        "max_total_tokens": 200, "enable_priority_scheduling": True, "max_running_requests": 4,
        "priority_scheduling_preemption_threshold": 0,
    },
    "no cache": {"max_total_tokens": 200, "disable_radix_cache": True, "chunked_prefill_size": -1},
}  # fmt: skip
Run = tuple[Trace, list[dict[str, Any]]]


@pytest.fixture(scope="module", params=SITUATIONS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A recorded run and its truth."""
    folder = tmp_path_factory.mktemp("sglang")
    where = os.pathsep.join((str(ROOT / "src"), os.environ.get("PYTHONPATH", "")))
    environment = {
        **os.environ, "STEPSCOPE_TRACE": str(folder / "traces"), "OMP_NUM_THREADS": "1",
        "PYTHONPATH": where, "STEPSCOPE_START": "",
        "SGLANG_TEST_RETRACT": str(request.param == "retractions").lower(),
    }  # fmt: skip
    driver = Path(__file__).with_name("drive_to_replay.py")
    command = [PYTHON, str(driver), str(folder), json.dumps(SITUATIONS[request.param])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (trace,) = (folder / "traces").iterdir()
    return Trace.open(trace), json.loads((folder / "truth.json").read_text())


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


@pytest.mark.parametrize("name", ["overlap", "a small pool"])
def test_overlapped_steps_and_aborts_of_who_runs_are_decided_again(
    name: str, tmp_path: Path
) -> None:
    driver = Path(__file__).with_name("drive_scheduler.py")
    env = {**os.environ, "OMP_NUM_THREADS": "1", "STEPSCOPE_START": ""}
    subprocess.run([PYTHON, str(driver), str(tmp_path), name], env=env, check=True)
    (recorded,) = tmp_path.glob("*/traces/*.trace")
    trace, out = Trace.open(recorded), tmp_path / "replay.trace"

    found = replay(trace, "sglang", {}, out, lambda script: launched(script, PYTHON, out))

    (rank,) = found.ranks
    assert rank.compared is not None
    assert rank.compared.divergence is None
    assert found.replayed.num_rows("steps") == trace.num_rows("steps") > 100
    given_up = trace.lifecycle.filter(event="abort").collect()
    assert set(given_up["num_generated"]) != {0}


def test_another_pool_is_another_batch_from_some_step_on(run: Run, tmp_path: Path) -> None:
    trace, _ = run
    out = tmp_path / "replay.trace"
    settings = {"max_total_tokens": 96}

    found = replay(trace, "sglang", settings, out, lambda script: launched(script, PYTHON, out))

    (rank,) = found.ranks
    assert rank.compared is not None
    assert rank.compared.divergence is not None
    assert not rank.said["is_stuck"]


def test_requests_end_at_a_stop_token_and_at_their_length(run: Run) -> None:
    trace, _ = run
    told = trace.lifecycle.collect()
    ignoring = set(told.filter(ignore_eos=True)["request"])
    stopped = set(told.filter(cause="finish_matched_token")["request"])

    assert ignoring
    assert stopped
    assert not ignoring & stopped
