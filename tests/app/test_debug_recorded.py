"""A session's state of recorded runs of a real vLLM is the scheduler's own, at every step."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stepscope.app.debug.engine_state import State
from stepscope.app.debug.session import Session
from tests.recorded import RUNS, RecordedRun, Row


@pytest.mark.parametrize("name", RUNS)
def test_queues_batch_and_blocks_are_the_schedulers_own_at_every_step(
    name: str, recorded: Callable[[str], RecordedRun]
) -> None:
    run = recorded(name)
    session = Session(run.trace)
    num_blocks = run.trace.manifest.config["engine"]["num_blocks"]

    for now in run.truth:
        session.goto(step=now["step"])
        assert _held(session.state, num_blocks) == _true(now)


def _held(state: State, num_blocks: int) -> Row:
    held = state.kv_blocks or {}
    return {
        "waiting": list(state.waiting or ()),
        "running": set(state.running or ()),
        "batch": {entry.request: entry.num_tokens for entry in state.batch or ()},
        "free": num_blocks - len(held),
        "blocks": set(held),
    }


def _true(now: Row) -> Row:
    return {
        "waiting": now["waiting"],
        "running": set(now["running"]),
        "batch": now["batch"],
        "free": now["free"],
        "blocks": {block for blocks in now["blocks"].values() for block in blocks[0]},
    }
