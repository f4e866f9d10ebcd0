"""Why each request is not in the batch, as a scheduler like vLLM's lets it be seen.

Every word for what blocks that the adapter can say is brought about by the scheduler itself.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.ingest.attach.vllm import attached
from stepscope.ingest.schema import WHAT_BLOCKS
from stepscope.ingest.trace import Trace
from tests.ingest.attach.vllm.recorded import Recorded
from tests.ingest.attach.vllm.stand_in import LoRARequest, Pause, Request, Status

ABSENT = SimpleNamespace(ensure_cache_available=lambda _: False)
UNDECIDED = SimpleNamespace(is_undecided=lambda _: True)
ONE, OTHER = LoRARequest("one"), LoRARequest("other")
Told = dict[str, tuple[str | None, str | None]]


def last_told(trace: Trace) -> Told:
    """By request, the resource and the holder of the decision about it that was recorded last."""
    told = trace.decisions.collect().rows(named=True)
    return {row["subject"]: (row["resource"], row["holder"]) for row in told}


def blocked(name: str, status: str) -> Request:
    return Request(name, status=Status[status], is_blocked=True)


def waiting(*requests: Request, **settings: Any) -> Callable[[Path], Recorded]:
    """One step with these requests."""

    def run(folder: Path) -> Recorded:
        recorded = Recorded(folder, **settings)
        recorded.add(*requests)
        recorded.step()
        return recorded

    return run


def preemption(folder: Path) -> Recorded:
    recorded = Recorded(folder, num_blocks=4)
    recorded.add(Request("a", 8, 6), Request("x", 8, 6))
    recorded.step(2)
    return recorded


def pause(folder: Path) -> Recorded:
    recorded = Recorded(folder)
    recorded.scheduler.set_pause_state(Pause.PAUSED_NEW)
    recorded.add(Request("x"))
    recorded.step()
    return recorded


def throttle(folder: Path) -> Recorded:
    recorded = Recorded(folder, num_ranks=2)
    recorded.add(Request("a", 4, 9))
    recorded.step()
    recorded.add(Request("x"))
    recorded.step(throttled=True)
    return recorded


def throttle_running(folder: Path) -> Recorded:
    recorded = Recorded(folder, budget=6, num_ranks=2)
    recorded.add(Request("a", 4, 9), Request("x", 9))
    recorded.step()
    recorded.step(throttled=True)
    return recorded


def session(folder: Path) -> Recorded:
    recorded = Recorded(folder)
    recorded.add(Request("x", 4, 1, resumable=True), Request("a", 4, 9))
    recorded.step(2)
    return recorded


def last_token(folder: Path) -> Recorded:
    recorded = Recorded(folder, is_async=True)
    recorded.add(Request("x", 4, 1))
    recorded.form()
    recorded.form()
    return recorded


def running_encoder(what: str) -> Callable[[Path], Recorded]:
    def run(folder: Path) -> Recorded:
        recorded = Recorded(folder, budget=6)
        request = Request("x", 9)
        recorded.add(request)
        recorded.step()
        if what == "prefetch":
            recorded.scheduler.ec_connector, request.mm_features = ABSENT, ("image",)
        request.has_encoder_inputs = what == "encoder-budget"
        recorded.step()
        return recorded

    return run


def chunkless(folder: Path) -> Recorded:
    recorded = Recorded(folder, budget=8)
    recorded.scheduler.scheduler_config.enable_chunked_prefill = False
    recorded.add(Request("a", 4), Request("x", 6))
    recorded.step()
    return recorded


CASES = [
    pytest.param(waiting(Request("a", 8), Request("x", 8), num_blocks=3), "kv-block", None,
                 id="too few blocks"),
    pytest.param(waiting(Request("a"), Request("x"), budget=4), "token-budget", "a",
                 id="the budget is spent"),
    pytest.param(chunkless, "token-budget", None, id="a prompt that may not be chunked"),
    pytest.param(waiting(Request("a", 4), Request("x", 8), budget=6,
                         need_mamba_block_aligned_split=True), "token-budget", None,
                 id="less than a whole Mamba block"),
    pytest.param(waiting(Request("a"), Request("x"), max_num_seqs=1), "seat", None,
                 id="as many run as may"),
    pytest.param(waiting(Request("a"), Request("b"), Request("x"), max_num_seqs=1), "queue", "b",
                 id="behind the head"),
    pytest.param(waiting(blocked("x", "WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR")), "grammar", None,
                 id="a grammar that is compiled"),
    pytest.param(waiting(blocked("x", "WAITING_FOR_REMOTE_KVS")), "remote-kv", None,
                 id="KV that is loaded"),
    pytest.param(waiting(Request("x"), connector=UNDECIDED), "remote-kv", None,
                 id="a connector that has not said yet"),
    pytest.param(waiting(Request("x"), Request("a"), connector=UNDECIDED), "remote-kv", None,
                 id="a connector that has not said yet, with others behind"),
    pytest.param(session, "streaming-input", None, id="a session between two inputs"),
    pytest.param(waiting(Request("x", mm_features=("image",)), ec_connector=ABSENT), "prefetch",
                 None, id="an image on its way"),
    pytest.param(running_encoder("prefetch"), "prefetch", None, id="an image, while it runs"),
    pytest.param(waiting(Request("x", has_encoder_inputs=True)), "encoder-budget", None,
                 id="no room in the encoder"),
    pytest.param(running_encoder("encoder-budget"), "encoder-budget", None,
                 id="no room in the encoder, while it runs"),
    pytest.param(waiting(Request("a", lora_request=ONE), Request("x", lora_request=OTHER),
                         lora_config=SimpleNamespace(max_loras=1)), "lora", "1 adapters",
                 id="another adapter than fits"),
    pytest.param(waiting(Request("x", num_stale_output_tokens=1)), "stale-output", None,
                 id="output from before a preemption"),
    pytest.param(preemption, "preemption", None, id="a step in which somebody was preempted"),
    pytest.param(pause, "pause", None, id="a paused engine"),
    pytest.param(throttle, "dp-throttle", None, id="prefills held back for other ranks"),
    pytest.param(throttle_running, "dp-throttle", None, id="a chunk held back for other ranks"),
    pytest.param(last_token, "last-token", None, id="its last token is under way"),
]  # fmt: skip


@pytest.mark.parametrize(("run", "resource", "holder"), CASES)
def test_who_is_left_out_is_told_what_kept_it_out(
    run: Callable[[Path], Recorded], resource: str, holder: str | None, tmp_path: Path
) -> None:
    assert last_told(run(tmp_path).trace())["x"] == (resource, holder)


def test_every_word_that_the_adapter_can_say_is_brought_about() -> None:
    said = {
        node.value
        for file in Path(attached.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in WHAT_BLOCKS
    }

    assert said == {case.values[1] for case in CASES}


def test_what_was_short_is_told_in_numbers(tmp_path: Path) -> None:
    run = waiting(Request("a", 8), Request("x", 13), num_blocks=5, budget=64)
    told = run(tmp_path).trace().decisions.collect().rows(named=True)

    assert [(row["needed"], row["available"]) for row in told] == [(4, 3)]


def test_who_gives_its_blocks_up_and_for_whom_is_a_decision_of_its_own(tmp_path: Path) -> None:
    told = preemption(tmp_path).trace().decisions.collect().rows(named=True)

    (decided,) = [row for row in told if row["verdict"] == "preempted"]
    assert (decided["subject"], decided["resource"]) == ("x", "kv-block")
    assert (decided["needed"], decided["available"]) == (1, 0)


def test_a_reason_is_told_once_for_as_long_as_it_holds(tmp_path: Path) -> None:
    recorded = waiting(Request("a", 4, 9), Request("x"), max_num_seqs=1)(tmp_path)
    recorded.step(5)

    assert recorded.trace().num_rows("decisions") == 1


def test_who_became_ready_is_told_before_it_is_admitted(tmp_path: Path) -> None:
    request = blocked("x", "WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR")
    recorded = waiting(request)(tmp_path)
    request.is_blocked, request.status = False, Status.WAITING
    recorded.step()

    events = recorded.trace().lifecycle.collect()["event"].to_list()
    assert events == ["arrive", "ready", "admit", "first-token"]


def test_a_pause_is_told_when_it_begins_though_no_step_follows(tmp_path: Path) -> None:
    recorded = waiting(Request("a", 4, 9), Request("x"), max_num_seqs=1)(tmp_path)

    recorded.scheduler.set_pause_state(Pause.PAUSED_ALL)

    assert last_told(recorded.trace())["x"][0] == "pause"
