from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope import Recorder, Trace
from stepscope.analyzers.replay.rank_by_rank import replay
from stepscope.analyzers.replay.script_of import requests_and_calls
from stepscope.ingest.attach.sglang.followed import TURN_OF
from stepscope.ingest.errors import NotReplayed
from tests.looped import looped

CONFIG = {"max_running_requests": 16, "max_total_num_tokens": 160, "context_len": 2048}


def arrived(out: Path, **columns: Any) -> Trace:
    with Recorder(out, producer="sglang", config=CONFIG) as recorder:
        recorder.lifecycle(
            ts_ns=1, step=0, request="a", event="arrive", prompt_len=5, max_tokens=8, **columns
        )
    return Trace.open(out)


def not_asked(_: object) -> dict[str, Any]:
    raise AssertionError("no scheduler is to be asked")


def test_requests_of_which_nobody_knows_whether_they_ignore_the_end_are_refused(
    tmp_path: Path,
) -> None:
    trace = arrived(tmp_path / "a.trace")

    with pytest.raises(NotReplayed, match="which requests ignore the end of a sequence"):
        replay(trace, "sglang", {}, tmp_path / "b.trace", not_asked)


def test_requests_for_adapters_are_refused(tmp_path: Path) -> None:
    trace = arrived(tmp_path / "a.trace", ignore_eos=False, lora="french")

    with pytest.raises(NotReplayed, match="LoRA adapters") as refused:
        replay(trace, "sglang", {}, tmp_path / "b.trace", not_asked)

    assert refused.value.exit_code == 5


def test_turns_of_sessions_that_keep_their_pages_are_refused(tmp_path: Path) -> None:
    trace = arrived(tmp_path / "a.trace", ignore_eos=False, cause=f"{TURN_OF}talk")

    with pytest.raises(NotReplayed, match="streaming sessions"):
        replay(trace, "sglang", {}, tmp_path / "b.trace", not_asked)


@looped("priority", [None, 3])
@looped("ignores", [False, True])
def test_a_request_is_asked_for_with_its_own_priority_and_end(
    tmp_path: Path, priority: int | None, ignores: bool
) -> None:
    trace = arrived(tmp_path / "a.trace", ignore_eos=ignores, priority=priority)

    (asked,), _ = requests_and_calls(trace, 0, {})

    assert (asked.priority, asked.ignore_eos) == (priority, ignores)


@looped(("producer", "by_step"), [("sglang", True), ("vllm", False)])
def test_who_runs_and_is_given_up_ends_with_the_results_of_a_step_where_the_engine_does_so(
    tmp_path: Path, producer: str, by_step: bool
) -> None:
    with Recorder(tmp_path / "a.trace", producer=producer, config=CONFIG) as recorder:
        told = {"request": "a", "prompt_len": 5, "max_tokens": 8, "ignore_eos": False}
        recorder.lifecycle(ts_ns=1, step=0, event="arrive", **told)
        recorder.steps(step=1, ts_ns=10, dur_ns=5, formed_ns=9, kind="prefill")
        recorder.batch_rows(step=1, ts_ns=9, row=0, request="a", phase="prefill", num_tokens=5)
        recorder.lifecycle(ts_ns=15, step=1, request="a", event="abort", cause="Aborted")

    _, calls = requests_and_calls(Trace.open(tmp_path / "a.trace"), 0, {})

    (update,) = [call for call in calls if call.what == "update"]
    assert ("a" in update.ends) is by_step
    assert [call.request for call in calls if call.what == "abort"] == ([] if by_step else ["a"])
