"""What is recorded of SGLang's real scheduler, held against its own state at every step.

`STEPSCOPE_SGLANG_PYTHON` names a Python that has SGLang 0.5.23 (docs/attach.md).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.trace import Trace
from tests.conftest import ROOT

PYTHON = os.environ.get("STEPSCOPE_SGLANG_PYTHON", "")
SITUATIONS: dict[str, dict[str, Any]] = {
    "a small pool": {"max_total_tokens": 128},
    "chunks": {
        "max_total_tokens": 160, "chunked_prefill_size": 16, "enable_mixed_chunk": True,
        "schedule_policy": "lpm",
    },
    "retractions": {
        "max_total_tokens": 200, "schedule_policy": "lpm", "schedule_conservativeness": 0.01,
    },
}  # fmt: skip
Run = tuple[Trace, list[dict[str, Any]]]

pytestmark = pytest.mark.skipif(not PYTHON, reason="STEPSCOPE_SGLANG_PYTHON names no SGLang")


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
    driver = Path(__file__).with_name("drive_scheduler.py")
    command = [PYTHON, str(driver), str(folder), json.dumps(SITUATIONS[request.param])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (trace,) = (folder / "traces").iterdir()
    return Trace.open(trace), json.loads((folder / "truth.json").read_text())


def test_batches_and_outputs_are_the_schedulers_at_every_step(run: Run) -> None:
    trace, truth = run
    rows = trace.batch_rows.sort("step", "row").collect()
    batches = [each["request"].to_list() for each in rows.partition_by("step")]
    assert batches == [step["batch"] for step in truth]
    tokens: Counter[str] = Counter()
    for number, step in enumerate(truth, 1):
        given = trace.outputs.collect().filter(step=number)
        for request, position in given.select("request", "position").rows():
            assert position == tokens[request]
            tokens[request] += 1
        assert {name: tokens[name] for name in step["batch"]} == step["tokens"]
    assert trace.manifest.closed
    assert trace.manifest.dropped == {}


def test_every_request_that_waits_has_a_reason(run: Run) -> None:
    trace, truth = run
    decided = trace.decisions.collect().select("step", "subject", "resource").rows()
    told: dict[str, dict[int, str | None]] = {}
    for number, subject, resource in decided:
        told.setdefault(subject, {})[number] = resource
    unknown = [
        (number, name)
        for number, step in enumerate(truth, 1)
        for name in step["waiting"]
        if not any(at <= number for at in told.get(name, ()))
    ]
    assert unknown == []


def test_what_came_of_each_request_is_told(run: Run) -> None:
    trace, _ = run
    events = Counter(trace.lifecycle.collect()["event"].to_list())

    assert events["arrive"] == 14
    assert events["finish"] + events["abort"] == 14
    assert events["preempt"] == events["resume"]
