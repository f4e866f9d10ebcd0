"""A session's state of recorded runs of a real vLLM is the scheduler's own, at every step."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.app.debug.session import Session
from tests.looped import looped
from tests.recorded import RUNS, RecordedRun
from tests.vllm.judging.state import differences, missing


@looped("name", RUNS)
def test_queues_batch_blocks_and_owners_are_the_schedulers_own_at_every_step(
    name: str, recorded: Callable[[str], RecordedRun]
) -> None:
    run = recorded(name)

    assert missing(Session(run.trace), run.truth) == 0
    assert differences(run.trace, run.truth) == []
