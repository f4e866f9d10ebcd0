"""Why vLLM left a request out of a batch: the branches of `Scheduler.schedule`, from evidence.

vLLM stores no reason anywhere. What was called for a request while it was considered, and the
scheduler's state after it, tell the branches apart; where they do not, that is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stepscope.ingest.attach.scheduler_recording import LeftOut
from stepscope.ingest.schema import NOT_READY

PREEMPTION = "somebody was preempted in this step: nobody is admitted"
STOPPED = "the scheduler stopped at one before it that was preempted itself"
NOT_SAID = "vLLM does not say why"
SKIPPED = (*NOT_READY, "lora")
"""Who is left out for one of these is passed by, and others behind it are looked at."""
_BLOCKED = {
    "WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR": ("grammar", "its grammar is being compiled"),
    "WAITING_FOR_FSM": ("grammar", "its grammar is being compiled"),
    "WAITING_FOR_REMOTE_KVS": ("remote-kv", "its KV is being loaded"),
    "WAITING_FOR_STREAMING_REQ": ("streaming-input", "it waits for the next part of its input"),
}


@dataclass(slots=True)
class Shortage:
    """A waiting request asked for KV blocks and got none: what was counted for it."""

    counted: list[int]
    is_whole_asked: bool
    reserved: int
    watermark: int
    num_free: int


@dataclass(slots=True)
class Looked:
    """A waiting request that the scheduler considered, and what it called for it."""

    request: Any
    was_looked_up: bool = False
    was_taken_out: bool = False
    shortage: Shortage | None = None


@dataclass(slots=True)
class Call:
    """One call of `schedule`, as far as it is known from what was called in it."""

    looked: list[Looked] = field(default_factory=list)
    began_ns: int = 0
    """When the first that waits was looked at, by the recorder's clock; 0 where nobody was."""
    preempted: Sequence[str] = ()
    defers_prefills: bool = False
    budget_left: int = 0
    input_left: int = 0
    scheduled: dict[str, int] = field(default_factory=dict)

    @property
    def passed(self) -> list[str]:
        """Who was looked at and not admitted, in that order."""
        left = (looked.request for looked in self.looked)
        return [each.request_id for each in left if each.status.name != "RUNNING"]

    @property
    def most_taken(self) -> str | None:
        """Who took most of the token budget."""
        return max(self.scheduled, key=self.scheduled.__getitem__, default=None)


def of_considered(scheduler: Any, call: Call, looked: Looked) -> LeftOut:
    """Why a request that was considered was not admitted."""
    request, shortage = looked.request, looked.shortage
    name = request.request_id
    if shortage is not None:
        return _short_of_blocks(name, shortage)
    if (blocked := _BLOCKED.get(request.status.name)) is not None:
        return LeftOut(name, *blocked)
    if getattr(request, "num_stale_output_tokens", 0) and not getattr(
        request, "drop_stale_output", False
    ):
        return LeftOut(name, "stale-output", "preempted with output still in flight")
    if not looked.was_looked_up and request.lora_request and not request.num_computed_tokens:
        most = scheduler.lora_config.max_loras if scheduler.lora_config else None
        return LeftOut(name, "lora", "as many adapters as fit are in the batch (max_loras)", 1, 0,
                       None if most is None else f"{most} adapters")  # fmt: skip
    return _undecided(scheduler, call, looked) or _of_budget(scheduler, call, request)


def of_head(scheduler: Any, call: Call, request: Any) -> LeftOut:
    """Why the first in line was not even considered."""
    name = request.request_id
    if call.preempted:
        return LeftOut(
            name, "preemption", "somebody was preempted in this step: nobody is admitted"
        )
    if (paused := of_pause(scheduler, request)) is not None:
        return paused
    if call.budget_left <= 0:
        wanted, taker = _wanted(request), call.most_taken
        return LeftOut(name, "token-budget", "the token budget is spent", wanted, 0, taker)
    if call.input_left <= 0:
        return LeftOut(name, "token-budget", "no room for its draft tokens", _wanted(request), 0)
    most = _most_running(scheduler)
    if most is not None and _num_running(scheduler) >= most:
        return LeftOut(name, "seat", "every running slot is taken (max_num_seqs)", 1, 0)
    return LeftOut(name, None, NOT_SAID)


def of_pause(scheduler: Any, request: Any) -> LeftOut | None:
    """That the engine is paused, if it is."""
    state = getattr(getattr(scheduler, "_pause_state", None), "name", "UNPAUSED")
    if state == "UNPAUSED":
        return None
    return LeftOut(request.request_id, "pause", f"the engine is paused ({state})")


def of_running(scheduler: Any, call: Call, request: Any) -> LeftOut:
    """Why a request that runs is not in the batch."""
    if (unready := _of_tokens_under_way(scheduler, request)) is not None:
        return unready
    name, wanted = request.request_id, _wanted_running(request)
    if call.defers_prefills and getattr(request, "is_prefill_chunk", False):
        return LeftOut(name, "dp-throttle", "prefills are held back until the ranks run them too")
    paused = of_pause(scheduler, request)
    if paused is not None and "ALL" in paused.reason:
        return paused
    if call.budget_left <= 0 or call.input_left <= 0:
        return LeftOut(name, "token-budget", "the token budget is spent", wanted, 0)
    if call.preempted:
        return LeftOut(name, "preemption", STOPPED, holder=call.preempted[-1])
    return _of_running_inputs(scheduler, request, wanted)


def _of_tokens_under_way(scheduler: Any, request: Any) -> LeftOut | None:
    """Of those that are scheduled ahead: that what came before is still under way."""
    name, placeholders = request.request_id, getattr(request, "num_output_placeholders", 0)
    end = request.num_computed_tokens + 2 - placeholders
    if placeholders > 0 and end >= request.num_prompt_tokens + request.max_tokens:
        return LeftOut(name, "last-token", "its last token is under way")
    if getattr(scheduler, "current_step", 0) < getattr(request, "next_decode_eligible_step", 0):
        return LeftOut(name, None, "its token of the step before is under way through the stages")
    is_full = request.num_computed_tokens >= scheduler.max_model_len - 1
    if is_full or _wanted_running(request) <= 0:
        return LeftOut(name, None, "all of its tokens are under way")
    return None


def _wanted_running(request: Any) -> int:
    ahead = getattr(request, "num_output_placeholders", 0)
    return int(request.num_tokens_with_spec + ahead - request.num_computed_tokens)


def _of_running_inputs(scheduler: Any, request: Any, wanted: int) -> LeftOut:
    name = request.request_id
    if getattr(scheduler, "ec_connector", None) is not None and request.mm_features:
        return LeftOut(name, "prefetch", "an input of its encoder is on its way, or has no room")
    if getattr(request, "has_encoder_inputs", False):
        return LeftOut(name, "encoder-budget", "what the encoder may compute or keep is spent")
    if getattr(scheduler, "need_mamba_block_aligned_split", False):
        return LeftOut(name, "token-budget", "what is left of the budget is less than a whole "
                       "Mamba block", wanted)  # fmt: skip
    return LeftOut(name, None, NOT_SAID)


def _short_of_blocks(name: str, shortage: Shortage) -> LeftOut:
    is_whole = shortage.is_whole_asked and len(shortage.counted) == 1
    reason = "too few KV blocks for the whole prompt" if is_whole else "too few KV blocks"
    if not shortage.counted:
        return LeftOut(name, "kv-block", reason, None, shortage.num_free)
    available = shortage.num_free - (0 if is_whole else shortage.reserved)
    needed = shortage.counted[-1] + shortage.watermark
    return LeftOut(name, "kv-block", reason, needed, available)


def _undecided(scheduler: Any, call: Call, looked: Looked) -> LeftOut | None:
    """What was looked at before any token was counted."""
    name, request = looked.request.request_id, looked.request
    is_passed = looked.was_taken_out
    if is_passed and getattr(scheduler, "ec_connector", None) is not None and request.mm_features:
        return LeftOut(name, "prefetch", "an input of its encoder is on its way")
    if is_passed and getattr(scheduler, "connector", None) is not None:
        return LeftOut(name, "remote-kv", "the KV connector has not said yet what it has of it")
    if call.defers_prefills:
        return LeftOut(name, "dp-throttle", "prefills are held back until the ranks run them too")
    return None


def _of_budget(scheduler: Any, call: Call, request: Any) -> LeftOut:
    """The last branches, in which tokens were counted and came to none."""
    name, wanted = request.request_id, _wanted(request)
    left = min(call.budget_left, call.input_left)
    if getattr(request, "has_encoder_inputs", False):
        return LeftOut(name, "encoder-budget", "what the encoder may compute or keep is spent")
    if wanted == 1 and left < 1 + getattr(scheduler, "num_spec_tokens", 0):
        return LeftOut(name, "token-budget", "no room for its padded draft tokens", wanted, left)
    if not scheduler.scheduler_config.enable_chunked_prefill and wanted > left:
        return LeftOut(name, "token-budget", "its prompt is not chunked, and is longer than what "
                       "is left of the budget", wanted, left)  # fmt: skip
    if getattr(scheduler, "need_mamba_block_aligned_split", False):
        return LeftOut(name, "token-budget", "what is left of the budget is less than a whole "
                       "Mamba block", wanted, left)  # fmt: skip
    if getattr(scheduler, "num_prefill_lookahead", 0) > 1:
        return LeftOut(name, "token-budget", "its prefill would end too close to its drafts",
                       wanted, left)  # fmt: skip
    return LeftOut(name, None, NOT_SAID)


def _wanted(request: Any) -> int:
    return int(request.num_tokens - request.num_computed_tokens)


def _most_running(scheduler: Any) -> int | None:
    most = getattr(scheduler, "max_num_active_reqs", None)
    return most if most is not None else getattr(scheduler, "max_num_running_reqs", None)


def _num_running(scheduler: Any) -> int:
    return len(scheduler.running) + getattr(scheduler, "num_waiting_for_streaming_input", 0)
