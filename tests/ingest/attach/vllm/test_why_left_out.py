"""Why vLLM left a request out: each branch of its scheduler, from what is seen of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.ingest.attach.scheduler_recording import LeftOut
from stepscope.ingest.attach.vllm.waiting.left_behind import BEHIND, NEAR, LeftBehind
from stepscope.ingest.attach.vllm.waiting.why_left_out import (
    Call,
    Looked,
    Shortage,
    of_considered,
    of_head,
    of_running,
)
from stepscope.ingest.schema import WHAT_BLOCKS


def scheduler(**held: Any) -> Any:
    settings = SimpleNamespace(enable_chunked_prefill=True, max_num_batched_tokens=64)
    known: dict[str, Any] = {
        "scheduler_config": settings, "lora_config": None, "max_model_len": 512, "running": [],
        "max_num_running_reqs": 8, "current_step": 5, "policy": "fcfs",
    }  # fmt: skip
    return SimpleNamespace(**known | held)


def request(name: str = "a", **held: Any) -> Any:
    known: dict[str, Any] = {
        "request_id": name, "status": SimpleNamespace(name="WAITING"), "num_tokens": 40,
        "num_computed_tokens": 0, "num_prompt_tokens": 40, "max_tokens": 8, "lora_request": None,
        "num_tokens_with_spec": 40, "mm_features": [],
    }  # fmt: skip
    return SimpleNamespace(**known | held)


def status(name: str) -> SimpleNamespace:
    return SimpleNamespace(name=name)


def considered(call: Call | None = None, *, of: Any = None, **held: Any) -> LeftOut:
    looked = Looked(request(**held), was_looked_up=True)
    call = call or Call(budget_left=10, input_left=10)
    call.looked.append(looked)
    return of_considered(of or scheduler(), call, looked)


@pytest.mark.parametrize(
    ("state", "resource"),
    [
        ("WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR", "grammar"),
        ("WAITING_FOR_FSM", "grammar"),
        ("WAITING_FOR_REMOTE_KVS", "remote-kv"),
        ("WAITING_FOR_STREAMING_REQ", "streaming-input"),
    ],
)
def test_a_request_that_is_not_ready_waits_for_what_its_status_says(
    state: str, resource: str
) -> None:
    assert considered(status=status(state)).resource == resource


def test_too_few_kv_blocks_are_counted_with_the_watermark_and_less_what_is_reserved() -> None:
    tried = Shortage([9, 4], is_whole_asked=True, reserved=2, watermark=1, num_free=6)
    looked = Looked(request(), was_looked_up=True, shortage=tried)

    left = of_considered(scheduler(), Call(looked=[looked]), looked)

    assert (left.resource, left.needed, left.available) == ("kv-block", 5, 4)


def test_a_prompt_that_does_not_fit_whole_is_held_against_all_free_blocks() -> None:
    tried = Shortage([9], is_whole_asked=True, reserved=2, watermark=0, num_free=6)
    looked = Looked(request(), was_looked_up=True, shortage=tried)

    left = of_considered(scheduler(), Call(looked=[looked]), looked)

    assert (left.needed, left.available) == (9, 6)
    assert left.reason == "too few KV blocks for the whole prompt"


def test_output_still_in_flight_keeps_a_preempted_request_out() -> None:
    assert considered(num_stale_output_tokens=1).resource == "stale-output"


def test_a_request_that_was_not_even_looked_up_lacks_room_for_its_adapter() -> None:
    looked = Looked(request(lora_request=object()))
    lora = scheduler(lora_config=SimpleNamespace(max_loras=2))

    assert of_considered(lora, Call(looked=[looked]), looked).resource == "lora"


def test_a_prompt_that_is_not_chunked_waits_for_a_budget_that_holds_it() -> None:
    settings = SimpleNamespace(enable_chunked_prefill=False)

    left = considered(of=scheduler(scheduler_config=settings))

    assert (left.resource, left.needed, left.available) == ("token-budget", 40, 10)


def test_where_the_evidence_fits_no_branch_that_is_said() -> None:
    left = considered()

    assert (left.resource, left.reason) == (None, "vLLM does not say why")


@pytest.mark.parametrize(
    ("call", "held", "resource"),
    [
        (Call(budget_left=9, input_left=9, preempted=("b",)), {}, "preemption"),
        (Call(budget_left=0, input_left=9), {}, "token-budget"),
        (Call(budget_left=9, input_left=0), {}, "token-budget"),
        (Call(budget_left=9, input_left=9), {"running": [1] * 8}, "seat"),
        (Call(budget_left=9, input_left=9), {"_pause_state": status("PAUSED_NEW")}, "pause"),
        (Call(budget_left=9, input_left=9), {}, None),
    ],
)
def test_a_head_that_was_not_looked_at_waits_for_what_ended_the_call(
    call: Call, held: dict[str, Any], resource: str | None
) -> None:
    assert of_head(scheduler(**held), call, request()).resource == resource


def test_who_took_most_of_the_budget_is_named_where_it_is_spent() -> None:
    call = Call(budget_left=0, scheduled={"b": 3, "c": 61})

    assert of_head(scheduler(), call, request()).holder == "c"


def test_a_request_whose_last_token_is_under_way_needs_no_other() -> None:
    ending = request(num_computed_tokens=47, num_output_placeholders=1, num_tokens_with_spec=47)

    assert of_running(scheduler(), Call(), ending).resource == "last-token"


def test_who_runs_behind_one_that_was_preempted_itself_is_left_out_for_that() -> None:
    call = Call(budget_left=9, input_left=9, preempted=("b",))

    left = of_running(scheduler(), call, request(num_computed_tokens=39))

    assert (left.resource, left.holder) == ("preemption", "b")


def test_every_word_for_what_blocks_is_one_of_the_schemas() -> None:
    calls = [Call(budget_left=0), Call(preempted=("b",)), Call(budget_left=1, input_left=1)]
    told = [of_head(scheduler(), call, request()) for call in calls]
    told += [of_running(scheduler(), call, request()) for call in calls]

    assert {left.resource for left in told} <= {*WHAT_BLOCKS, None}


class Told:
    """Keeps what is told of those who are left out."""

    def __init__(self) -> None:
        self.left: list[LeftOut] = []

    def left_out(self, _: int, left: list[LeftOut]) -> None:
        self.left += left

    def take(self) -> dict[str, tuple[str | None, str | None]]:
        taken = {each.request: (each.resource, each.holder) for each in self.left}
        self.left.clear()
        return taken


def line_of(count: int) -> tuple[LeftBehind, list[Any], Told]:
    line, told = [request(f"r{number}") for number in range(count)], Told()
    left: Any = LeftBehind(scheduler(), line, told)  # type: ignore[arg-type]  # stand-ins
    for each in line:
        left.came(each.request_id)
    return left, line, told


def test_whoever_is_not_the_head_is_behind_it_and_those_near_it_are_told_who_it_is() -> None:
    left, _, told = line_of(NEAR + 3)

    left.tell_waiting(1, Call(budget_left=0))

    said = told.take()
    assert said["r0"] == ("token-budget", None)
    assert said["r1"] == said[f"r{NEAR}"] == ("queue", "r0")
    assert said[f"r{NEAR + 1}"] == ("queue", None)
    assert len(said) == NEAR + 3


def test_those_behind_the_head_are_told_of_in_the_order_in_which_they_came() -> None:
    left, _, told = line_of(40)

    left.tell_waiting(1, Call(budget_left=0))

    assert [each.request for each in told.left] == [f"r{number}" for number in range(40)]


def test_a_reason_that_still_holds_is_not_told_again() -> None:
    left, _, told = line_of(20)
    left.tell_waiting(1, Call(budget_left=0))
    told.take()

    left.tell_waiting(2, Call(budget_left=0))

    assert told.take() == {}


def test_a_step_tells_no_more_than_changed_however_many_wait() -> None:
    left, line, told = line_of(500)
    left.tell_waiting(1, Call(budget_left=0))
    told.take()

    left.left([line.pop(0).request_id])
    left.tell_waiting(2, Call(budget_left=0))

    assert len(told.take()) == NEAR + 1


def test_who_is_passed_by_as_not_ready_is_no_head() -> None:
    left, line, told = line_of(3)
    line[0].status = status("WAITING_FOR_REMOTE_KVS")
    call = Call(looked=[Looked(line[0])], budget_left=0)

    left.tell_waiting(1, call)

    said = told.take()
    assert (said["r0"][0], said["r1"][0], said["r2"]) == (
        "remote-kv",
        "token-budget",
        ("queue", "r1"),
    )


def test_a_head_that_is_none_any_more_is_behind_the_new_one() -> None:
    left, line, told = line_of(2)
    left.tell_waiting(1, Call(budget_left=0))
    told.take()

    line.insert(0, request("first"))
    left.came("first")
    left.tell_waiting(2, Call(budget_left=0))

    assert told.take()["r0"] == ("queue", "first")
    assert BEHIND == "behind the head of the queue"
