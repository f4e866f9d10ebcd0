"""What SGLang has to offer to be recorded."""

from __future__ import annotations

from stepscope.ingest.attach.installed.offered import InstalledEngine, Part
from stepscope.ingest.attach.sglang.registering import (
    ADDER,
    BATCH,
    GRAMMARS,
    HOOKS,
    POLICY,
    SCHEDULER,
    TIMES,
)

_TAKES = {ADDER + "_check_prefill_budget": "total_tokens"}
"""Parameters that are looked up by their names."""
ASKED = ("sglang.srt.mem_cache.unified_radix_cache:UnifiedRadixCache.session_records()",)
"""What is called, and not hooked."""


def _needs(owner: str, *names: str) -> tuple[str, ...]:
    """Functions of a class, of those that are hooked."""
    module, _, kind = owner.rstrip(".").rpartition(".")
    hooked = [target.removeprefix(owner) for target in HOOKS if target.startswith(owner)]
    assert set(names) <= set(hooked)
    return tuple(f"{module}:{kind}.{name}({_TAKES.get(owner + name, '')})" for name in names)


SGLANG = InstalledEngine(
    name="sglang",
    title="SGLang",
    distributions=("sglang",),
    plugins="sglang.srt.plugins",
    allowed="SGLANG_PLUGINS",
    empty_is_all=True,
    tested=("0.5.23",),
    parts=(
        Part("steps, batches, the queue, outputs and pages of the KV cache",
             _needs(SCHEDULER, "get_next_batch_to_run", "process_batch_result")),
        Part("requests that arrive, and those that end outside of a batch",
             _needs(SCHEDULER, "_add_request_to_queue", "send_abort_output")),
        Part("why requests wait for room, or for others",
             (*_needs(SCHEDULER, "get_new_batch_prefill"),
              *_needs(POLICY, "calc_priority"),
              *_needs(ADDER, "_check_prefill_budget", "add_one_req", "budget_state"))),
        Part("prefills that are held back", _needs(SCHEDULER, "_should_defer_prefill")),
        Part("requests whose LoRA adapter does not fit",
             _needs(SCHEDULER, "can_schedule_lora_req")),
        Part("pages that a streaming session keeps between its turns",
             ASKED),
        Part("requests whose prefix is being loaded",
             (*_needs(TIMES, "observe_storage_prefetch_ready", "observe_storage_staging_ready"),
              *_needs(SCHEDULER, "_prefetch_after_device_hit_loss"))),
        Part("requests whose grammar is being compiled",
             _needs(GRAMMARS, "process_req_with_grammar")),
        Part("requests that find the queue full", _needs(SCHEDULER, "_abort_on_queued_limit")),
        Part("how much a retraction needed", _needs(BATCH, "retract_decode")),
        Part("for whom a request was preempted", _needs(ADDER, "preempt_to_schedule")),
        Part("pauses of the engine", _needs(SCHEDULER, "pause_generation")),
        Part("the end of the recording", _needs(SCHEDULER, "release_host_resources")),
    ),
    never=(
        "any step of diffusion models, or with prefill and decode in different engines",
        "which request holds which page, where the KV cache lies on a GPU",
        "the front end",
    ),
)  # fmt: skip
