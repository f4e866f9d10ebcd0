"""What SGLang loads in every process of its own: an entry point of `sglang.srt.plugins`.

Where `STEPSCOPE_TRACE` is not set, it looks that up and does nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

_SCHEDULER = "sglang.srt.managers.scheduler.Scheduler."
_ADDER = "sglang.srt.managers.schedule_policy.PrefillAdder."


def register() -> None:
    """Record the schedulers of this process, where `STEPSCOPE_TRACE` names a directory."""
    if os.environ.get("STEPSCOPE_TRACE"):
        hook()


def hook() -> None:
    """Put our functions around SGLang's, through its own registry of hooks."""
    from sglang.srt.plugins.hook_registry import (  # noqa: PLC0415
        HookRegistry,
        HookType,
    )

    from stepscope.ingest.recording.starts import START, new_start  # noqa: PLC0415

    if not os.environ.get(START):
        new_start()

    def around(target: str, hook: Callable[..., Any]) -> None:
        HookRegistry.register(target, hook, HookType.AROUND)

    for name in ("_add_request_to_queue", "process_batch_result", "abort_request"):
        around(_SCHEDULER + name, _told(name.lstrip("_")))
    around(_SCHEDULER + "get_next_batch_to_run", _forming)
    around(_SCHEDULER + "_should_defer_prefill", _told("should_defer_prefill"))
    around(_SCHEDULER + "release_host_resources", _closing)
    around(_ADDER + "add_one_req", _tried)
    around(_ADDER + "budget_state", _looked_at_budget)


def _told(moment: str) -> Callable[..., Any]:
    def hook(original: Callable[..., Any], scheduler: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(scheduler, *args, **kwargs)
        if attached := _attached(scheduler):
            attached.hooks.safely(getattr(attached, moment), result, *args, **kwargs)
        return result

    return hook


def _forming(original: Callable[..., Any], scheduler: Any, *args: Any, **kwargs: Any) -> Any:
    attached = _attached(scheduler)
    if not attached:
        return original(scheduler, *args, **kwargs)
    attached.hooks.safely(attached.forming)
    plan = original(scheduler, *args, **kwargs)
    attached.hooks.safely(attached.formed, plan)
    return plan


def _tried(original: Callable[..., Any], adder: Any, req: Any, *args: Any, **kwargs: Any) -> Any:
    from stepscope.ingest.attach.sglang.followed import asking  # noqa: PLC0415

    result = original(adder, req, *args, **kwargs)
    if attached := asking():
        attached.hooks.safely(attached.tried, adder, req, result)
    return result


def _looked_at_budget(original: Callable[..., Any], adder: Any) -> Any:
    from stepscope.ingest.attach.sglang.followed import asking  # noqa: PLC0415

    result = original(adder)
    if attached := asking():
        attached.hooks.safely(attached.looked_at_budget, result)
    return result


def _closing(original: Callable[..., Any], scheduler: Any, *args: Any, **kwargs: Any) -> Any:
    if attached := _attached(scheduler):
        attached.close()
    return original(scheduler, *args, **kwargs)


def _attached(scheduler: Any) -> Any:
    from stepscope.ingest.attach.sglang.followed import attached_to  # noqa: PLC0415

    return attached_to(scheduler)
