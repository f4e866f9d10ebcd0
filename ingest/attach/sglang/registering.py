"""What SGLang loads in every process of its own: an entry point of `sglang.srt.plugins`.

Where `STEPSCOPE_TRACE` is not set, it looks that up and does nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepscope.ingest.attach.sglang.followed import SGLangScheduler

SCHEDULER = "sglang.srt.managers.scheduler.Scheduler."
ADDER = "sglang.srt.managers.schedule_policy.PrefillAdder."
POLICY = "sglang.srt.managers.schedule_policy.SchedulePolicy."
BATCH = "sglang.srt.managers.schedule_batch.ScheduleBatch."
TIMES = "sglang.srt.observability.req_time_stats.SchedulerReqTimeStats."
GRAMMARS = "sglang.srt.constrained.grammar_manager.GrammarManager."
_TOLD = (
    "_add_request_to_queue", "_abort_on_queued_limit", "process_batch_result", "send_abort_output",
    "pause_generation",
)  # fmt: skip
Hook = Callable[..., Any]


def register() -> None:
    """Record the schedulers of this process, where `STEPSCOPE_TRACE` names a directory."""
    if os.environ.get("STEPSCOPE_TRACE"):
        hook()


def hook() -> None:
    """Put our functions around SGLang's, through its own registry of hooks."""
    from sglang.srt.plugins.hook_registry import (
        HookRegistry,
        HookType,
    )

    from stepscope.ingest.recording.starts import START, new_start

    if not os.environ.get(START):
        new_start()
    for target, hook in HOOKS.items():
        HookRegistry.register(target, hook, HookType.AROUND)


def _told(moment: str) -> Hook:
    """Tell what a scheduler has done, by what it gave back and what it was given."""

    def hook(original: Hook, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(scheduler, *args, **kwargs)
        if attached := _attached(scheduler):
            attached.hooks.safely(getattr(attached, moment), result, *args, **kwargs)
        return result

    return hook


def _forming(original: Hook, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
    attached = _attached(scheduler)
    if not attached:
        return original(scheduler, *args, **kwargs)
    attached.hooks.safely(attached.forming)
    plan = original(scheduler, *args, **kwargs)
    attached.hooks.safely(attached.formed, plan)
    return plan


def _asked_after(note: Callable[..., None]) -> Hook:
    """Note what was asked while a batch is formed, and the answer."""

    def hook(original: Hook, asked: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(asked, *args, **kwargs)
        if attached := _asking():
            attached.hooks.safely(note, attached, result, asked, *args, **kwargs)
        return result

    return hook


def _asked_before(note: Callable[..., None]) -> Hook:
    """Note what is asked while a batch is formed, as things stand before it is answered."""

    def hook(original: Hook, asked: Any, *args: Any, **kwargs: Any) -> Any:
        if attached := _asking():
            attached.hooks.safely(note, attached, asked, *args, **kwargs)
        return original(asked, *args, **kwargs)

    return hook


def _held_back(to: SGLangScheduler, is_held_back: bool, *_: object, **__: object) -> None:
    to.reasons.is_deferred = is_held_back


def _looked(to: SGLangScheduler, plan: Any, *_: object, **__: object) -> None:
    to.reasons.looked(plan.running_batch.batch_is_full)


def _adapter(to: SGLangScheduler, fits: bool, _: object, req: Any, in_use: Any) -> None:
    if not fits:
        to.lacks_adapter(req, in_use)


def _sorted(to: SGLangScheduler, *_: object, **__: object) -> None:
    to.reasons.sorted()


def _checked(to: SGLangScheduler, adder: Any, *_: object, total_tokens: int, **__: object) -> None:
    to.reasons.checked(adder, total_tokens)


def _tried(
    to: SGLangScheduler, result: Any, adder: Any, req: Any, *_: object, **__: object
) -> None:
    to.reasons.tried(adder, req, result)


def _budget(to: SGLangScheduler, result: Any, adder: Any) -> None:
    to.reasons.looked_at_budget(adder, result)


def _loaded(to: SGLangScheduler, _: object, times: Any, is_ready: bool) -> None:
    if not is_ready:
        to.reasons.loads(times)


def _looked_up_again(to: SGLangScheduler, is_loading: bool, _: object, req: Any) -> None:
    if is_loading:
        to.reasons.loads(req.time_stats)


def _compiling(original: Hook, grammars: Any, req: Any) -> Any:
    is_compiling = original(grammars, req)
    if is_compiling and (attached := _attached(grammars.scheduler)):
        attached.hooks.safely(attached.compiling, req)
    return is_compiling


def _making_room(original: Hook, adder: Any, req: Any) -> Any:
    if attached := _asking():
        attached.hooks.safely(attached.asked_for_place, adder)
    is_committed = original(adder, req)
    if attached:
        attached.hooks.safely(attached.preempted_for, req.rid, adder.preempt_list)
    return is_committed


def _retracting(to: SGLangScheduler, batch: Any) -> None:
    available = batch.token_to_kv_pool_allocator.available_size()
    to.short_of(int(batch.new_tokens_required_next_decode()), int(available))


def _closing(original: Hook, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
    if attached := _attached(scheduler):
        attached.close()
    return original(scheduler, *args, **kwargs)


def _attached(scheduler: Any) -> SGLangScheduler | None:
    from stepscope.ingest.attach.sglang.attached_to import attached_to

    return attached_to(scheduler)


def _asking() -> SGLangScheduler | None:
    from stepscope.ingest.attach.sglang.followed import asking

    return asking()


HOOKS: dict[str, Hook] = {
    **{SCHEDULER + name: _told(name.lstrip("_")) for name in _TOLD},
    SCHEDULER + "get_next_batch_to_run": _forming,
    SCHEDULER + "_should_defer_prefill": _asked_after(_held_back),
    SCHEDULER + "get_new_batch_prefill": _asked_after(_looked),
    SCHEDULER + "can_schedule_lora_req": _asked_after(_adapter),
    SCHEDULER + "_prefetch_after_device_hit_loss": _asked_after(_looked_up_again),
    SCHEDULER + "release_host_resources": _closing,
    POLICY + "calc_priority": _asked_after(_sorted),
    ADDER + "_check_prefill_budget": _asked_before(_checked),
    ADDER + "add_one_req": _asked_after(_tried),
    ADDER + "budget_state": _asked_after(_budget),
    ADDER + "preempt_to_schedule": _making_room,
    TIMES + "observe_storage_prefetch_ready": _asked_after(_loaded),
    TIMES + "observe_storage_staging_ready": _asked_after(_loaded),
    GRAMMARS + "process_req_with_grammar": _compiling,
    BATCH + "retract_decode": _asked_before(_retracting),
}
"""What is hooked in SGLang, by its name there."""
