"""The state of a scheduler as it stands, as one row of `spans` and the order of its queue.

A row of another table would be taken for something that the scheduler did; a dump is only what
somebody saw. `args` is JSON: why, the queue and who runs with what each has, free KV blocks, and
where each thread of the process stands.
"""

from __future__ import annotations

import json
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from stepscope.ingest.attach.vllm.waiting.line import WaitingLine
from stepscope.ingest.recorder import Recorder

NAME, CATEGORY = "scheduler dump", "dump"
MOST_REQUESTS, MOST_FRAMES = 2_000, 12


def dumper(
    recorder: Recorder, scheduler: Any, num_steps: Callable[[], int]
) -> Callable[[str], None]:
    """Build what writes a dump, by functions of its own, as it has a thread of its own."""
    span = recorder.narrow("spans", "step", "ts_ns", "track", "name", "category", "form", "args")
    order = recorder.narrow("queue_order", "step", "ts_ns", "index", "request")

    def dump(why: str) -> None:
        told = state_of(scheduler)
        now_ns, step = recorder.now_ns(), num_steps()
        args = json.dumps({"why": why, **told, "threads": _threads()})
        for index, request in enumerate(told["waiting"]):
            order(step, now_ns, index, request["request"])
        span(step, now_ns, "stepscope", NAME, CATEGORY, "instant", args)

    return dump


def state_of(scheduler: Any) -> dict[str, Any]:
    """What a scheduler of vLLM holds; what this version of it does not have is left out."""
    waiting = [*WaitingLine(scheduler)]
    pool = getattr(scheduler.kv_cache_manager, "block_pool", None)
    told = {
        "waiting": [_request(scheduler, each) for each in waiting[:MOST_REQUESTS]],
        "running": [_request(scheduler, each) for each in scheduler.running[:MOST_REQUESTS]],
        "num_waiting": len(waiting),
        "num_running": len(scheduler.running),
        "kv_blocks_free": pool.get_num_free_blocks() if pool is not None else None,
        "paused": getattr(getattr(scheduler, "pause_state", None), "name", None),
    }
    return {name: held for name, held in told.items() if held is not None}


def _request(scheduler: Any, request: Any) -> dict[str, Any]:
    blocks = scheduler.kv_cache_manager.get_block_ids(request.request_id)
    return {
        "request": request.request_id,
        "status": request.status.name,
        "prompt": request.num_prompt_tokens,
        "computed": request.num_computed_tokens,
        "generated": request.num_output_tokens,
        "blocks": sum(len(group) for group in blocks),
        "preemptions": getattr(request, "num_preemptions", None),
    }


def _threads() -> dict[str, list[str]]:
    """The innermost frames of each thread but this one: places, and nothing that they hold."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    here = threading.get_ident()
    return {
        f"{names.get(ident, '?')} {ident}": [
            f"{frame.name} ({frame.filename}:{frame.lineno})"
            for frame in traceback.extract_stack(at)[-MOST_FRAMES:]
        ]
        for ident, at in sys._current_frames().items()
        if ident != here
    }
