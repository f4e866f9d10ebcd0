"""The schedulers of other versions of vLLM, alone: each step is recorded as they held it.

`STEPSCOPE_VLLM_PYTHONS` names Pythons of other versions, separated as paths are; the one that the
tests run in is tried besides.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from stepscope.app.debug.session import Session
from tests.vllm.judging import judges, reasons, state
from tests.vllm.running.alone import SITUATIONS, run_alone
from tests.vllm.runs import Run

OTHERS = [each for each in os.environ.get("STEPSCOPE_VLLM_PYTHONS", "").split(os.pathsep) if each]
PYTHONS = [
    pytest.param(sys.executable, id="installed"),
    *(pytest.param(each, id=Path(each).parents[1].name) for each in OTHERS),
]
if not OTHERS:
    PYTHONS.append(pytest.param(None, id="others", marks=pytest.mark.skip(
        reason="STEPSCOPE_VLLM_PYTHONS names no Python of another vLLM")))  # fmt: skip


@pytest.fixture(scope="module", params=PYTHONS)
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Run]:
    return run_alone(request.param, SITUATIONS, tmp_path_factory.mktemp("alone"))


@pytest.fixture(params=[each.name for each in SITUATIONS])
def run(request: pytest.FixtureRequest, runs: dict[str, Run]) -> Run:
    return runs[request.param]


def test_queues_batch_blocks_and_owners_are_the_schedulers_own_at_every_step(run: Run) -> None:
    assert state.missing(Session(run.trace), run.truth[0]) == 0
    assert state.differences(run.trace, run.truth[0]) == []
    assert len(state.steps_of(Session(run.trace), run.truth[0])) >= 50


def test_tokens_of_each_step_and_their_outputs_are_those_of_the_scheduler(run: Run) -> None:
    formed = [line["batch"] for line in run.truth[0] if line["after"] == "schedule"]
    true = [(len(batch), sum(batch.values())) for batch in formed if batch]
    given = sum(sum(line["tokens"].values()) for line in run.truth[0] if line["after"] == "update")

    assert judges.tokens_of_rows(run.trace) == true
    assert judges.tokens_of_steps(run.trace) == true
    assert run.trace.num_rows("outputs") == given


def test_whoever_waits_has_a_reason_at_every_step(run: Run) -> None:
    assert state.unexplained(run.trace, run.truth[0]) == []


def test_each_reason_is_what_the_scheduler_itself_was_short_of(run: Run) -> None:
    assert reasons.unfounded(run.trace, run.truth[0]) == []


def test_the_situations_bring_about_what_a_request_can_wait_for(runs: dict[str, Run]) -> None:
    told = set()
    for run in runs.values():
        told |= set(run.trace.decisions.collect()["resource"])

    assert told >= {"kv-block", "token-budget", "seat", "queue", "grammar", "lora", "preemption"}


def test_requests_are_preempted(runs: dict[str, Run]) -> None:
    for name in ("crowd", "priorities", "prefixes"):
        events = runs[name].trace.lifecycle.collect()["event"].to_list()
        assert events.count("preempt") > 0, name
        assert events.count("preempt") >= events.count("resume") > 0, name
