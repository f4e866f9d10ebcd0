"""A plug-in of vLLM that writes down what its scheduler holds, a line of JSON after each step.

It is loaded as `stepscope_truth`, copied out of this checkout, so that it shares no line with what
it is the witness of: nothing here imports stepscope, and all is read off the scheduler's own
objects. `STEPSCOPE_TRUTH` names the folder; each process that has a scheduler writes a file there.
"""

from __future__ import annotations

import heapq
import inspect
import json
import os
import sys
import time
from functools import wraps
from typing import Any

FOLDER = "STEPSCOPE_TRUTH"


def install() -> None:
    """Wrap the scheduler's two calls of a step, where the folder is named."""
    if os.environ.get(FOLDER):
        _restore_async(os.environ.get("STEPSCOPE_TRUTH_ASYNC"))
        _write_small_files(os.environ.get("STEPSCOPE_TRUTH_FILE_BYTES"))
        watch()


def watch() -> None:
    """Wrap the classes of the scheduler, of its queues and of its KV cache manager."""
    from vllm.v1.core.kv_cache_manager import KVCacheManager
    from vllm.v1.core.sched.request_queue import FCFSRequestQueue, PriorityRequestQueue
    from vllm.v1.core.sched.scheduler import Scheduler

    calls = Calls()
    calls.watch(Scheduler, KVCacheManager, (FCFSRequestQueue, PriorityRequestQueue))
    Witness(calls).watch(Scheduler)


class Calls:
    """What one call of `schedule` called in its turn, and where its own variables stood at the end.

    `looked` are the waiting requests that it looked at, in order; `tried` what it asked KV blocks
    for: whose, whether it had them, and what stood against what.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A call begins."""
        self.looked: list[str] = []
        self.tried: list[dict[str, Any]] = []
        self.ended: dict[str, Any] = {}

    def watch(self, scheduler: Any, manager: Any, queues: tuple[Any, ...]) -> None:
        """Wrap the classes."""
        for queue in queues:
            queue.peek_request = self._peeking(queue.peek_request)
        manager.allocate_slots = self._allocating(manager.allocate_slots)
        scheduler._update_after_schedule = self._ending(scheduler._update_after_schedule)

    def _peeking(self, peek: Any) -> Any:
        @wraps(peek)
        def peeked(queue: Any) -> Any:
            request = peek(queue)
            if _caller() == "schedule":  # else two heads are compared
                self.looked.append(request.request_id)
            return request

        return peeked

    def _allocating(self, allocate: Any) -> Any:
        signature = inspect.signature(allocate)

        @wraps(allocate)
        def allocated(manager: Any, *args: Any, **kwargs: Any) -> Any:
            given = signature.bind(manager, *args, **kwargs)
            given.apply_defaults()
            counted = _counted(manager, given.arguments)
            blocks = allocate(manager, *args, **kwargs)
            self.tried.append({**counted, "had": blocks is not None})
            return blocks

        return allocated

    def _ending(self, update: Any) -> Any:
        @wraps(update)
        def updated(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            frame: Any = sys._getframe(1)
            while frame is not None and frame.f_code.co_name != "schedule":
                frame = frame.f_back
            own = frame.f_locals if frame is not None else {}
            self.ended = {
                "budget": own.get("token_budget"),
                "input": own.get("input_budget"),
                "preempted": [each.request_id for each in own.get("preempted_reqs", ())],
                "loras": sorted(own.get("scheduled_loras", ())),
                "encoder": own.get("encoder_compute_budget"),
            }
            return update(scheduler, *args, **kwargs)

        return updated


def _caller() -> str:
    """The name of the engine's function that called what is wrapped, by us and by a recorder."""
    frame: Any = sys._getframe(2)
    while frame.f_code.co_name == "hooked":
        frame = frame.f_back
    return str(frame.f_code.co_name)


def _counted(manager: Any, given: dict[str, Any]) -> dict[str, Any]:
    """How many KV blocks a request would take, counted anew, against those that it may have.

    Of each group: the blocks of its tokens, without those that it has and those that are found in
    the cache, of which the ones that nobody holds are taken from the free ones. A window keeps
    fewer than all of its tokens, so with one nothing is counted (`needed` is null).
    """
    request, pool = given["request"], manager.block_pool
    free = pool.get_num_free_blocks()
    groups = manager.coordinator.single_type_managers
    is_plain = all(type(each).__name__ == "FullAttentionManager" for each in groups)
    found = given["new_computed_blocks"]
    hits = found.blocks if found is not None else tuple([] for _ in groups)
    computed = request.num_computed_tokens + given["num_new_computed_tokens"]
    tokens = computed + given["num_new_tokens"] + given["num_lookahead_tokens"]
    least = [min(tokens, manager.max_model_len)]
    if given.get("full_sequence_must_fit"):
        least.append(min(request.num_tokens, manager.max_model_len))
    held = [len(each.req_to_blocks.get(request.request_id, ())) for each in groups]
    needed = max(
        sum(
            max(0, -(-num_tokens // each.block_size) - max(has, len(known)))
            + sum(block.ref_cnt == 0 and not block.is_null for block in known)
            for each, has, known in zip(groups, held, hits, strict=True)
        )
        for num_tokens in least
    )
    is_new = request.status.name in ("WAITING", "PREEMPTED")
    spare = getattr(manager, "watermark_blocks", 0) if is_new else 0
    return {
        "request": request.request_id,
        "is_new": is_new,
        "needed": needed if is_plain else None,
        "free": free,
        "spare": spare if given.get("has_scheduled_reqs", True) else 0,
    }


class Witness:
    """Writes lines; one `write` each, so that a kill leaves only whole ones."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.files: dict[str, int] = {}

    def watch(self, scheduler: Any) -> None:
        """Wrap `schedule` and `update_from_output` of the class."""
        schedule, update = scheduler.schedule, scheduler.update_from_output

        @wraps(schedule)
        def schedule_seen(this: Any, *args: Any, **kwargs: Any) -> Any:
            this.witnessed_steps = getattr(this, "witnessed_steps", 0) + 1
            self.calls.begin()
            output = schedule(this, *args, **kwargs)
            self.write({
                "after": "schedule", **_held(this), "batch": output.num_scheduled_tokens,
                "looked": self.calls.looked, "tried": self.calls.tried, **self.calls.ended,
            })  # fmt: skip
            _misbehave(this.witnessed_steps)
            return output

        @wraps(update)
        def update_seen(this: Any, output: Any, *args: Any, **kwargs: Any) -> Any:
            made = update(this, output, *args, **kwargs)
            told = [each for sent in made.values() for each in sent.outputs]
            tokens = {each.request_id: len(each.new_token_ids) for each in told}
            ended = {
                each.request_id: each.finish_reason.name.lower()
                for each in told
                if each.finish_reason is not None
            }
            ran = output.num_scheduled_tokens
            self.write(
                {"after": "update", **_held(this), "ran": ran, "tokens": tokens, "ended": ended}
            )
            return made

        scheduler.schedule, scheduler.update_from_output = schedule_seen, update_seen

    def write(self, line: dict[str, Any]) -> None:
        """Append a line to this process's file."""
        path = os.path.join(os.environ[FOLDER], f"{os.getpid()}.truth.jsonl")
        if path not in self.files:
            self.files[path] = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.write(self.files[path], json.dumps(line).encode() + b"\n")


def _misbehave(step: int) -> None:
    """Hang or die at the step that the environment names."""
    if os.environ.get("STEPSCOPE_TRUTH_DIE") == str(step):
        raise RuntimeError("asked to die")
    if os.environ.get("STEPSCOPE_TRUTH_HANG") == str(step):
        time.sleep(600)


def _held(scheduler: Any) -> dict[str, Any]:
    pool = scheduler.kv_cache_manager.block_pool
    tables = {
        name: scheduler.kv_cache_manager.get_block_ids(name) for name in list(scheduler.requests)
    }
    return {
        "step": scheduler.witnessed_steps,
        "t": time.time_ns(),
        "dp": _rank(scheduler.vllm_config.parallel_config),
        "waiting": [each.request_id for each in _queued(scheduler)],
        "status": {each.request_id: each.status.name for each in scheduler.requests.values()},
        "adapters": {
            each.request_id: each.lora_request.lora_int_id
            for each in scheduler.requests.values()
            if each.lora_request is not None
        },
        "running": [each.request_id for each in scheduler.running],
        "free": pool.get_num_free_blocks(),
        "blocks": {name: table for name, table in tables.items() if any(table)},
        "refs": {block.block_id: block.ref_cnt for block in pool.blocks if block.ref_cnt},
        "computed": {each.request_id: each.num_computed_tokens for each in scheduler.running},
        "cached": sum(
            block.ref_cnt == 0 and block.block_hash is not None and not block.is_null
            for block in pool.blocks
        ),
    }


def _rank(config: Any) -> int:
    """The data-parallel rank; versions have called it by two names."""
    return int(getattr(config, "data_parallel_index", None) or config.data_parallel_rank or 0)


def _queued(scheduler: Any) -> list[Any]:
    """The waiting queues, in the order in which the scheduler empties them.

    Those that were skipped, which versions before 0.32 keep apart, come before the others; where
    there are priorities, whoever has the better one.
    """
    first = list(getattr(scheduler, "kv_holding_waiting", ()))
    skipped, waiting = list(getattr(scheduler, "skipped_waiting", ())), list(scheduler.waiting)
    if skipped and waiting and scheduler.policy.value == "priority":
        return first + list(heapq.merge(skipped, waiting, key=_urgency))
    return first + skipped + waiting


def _urgency(request: Any) -> tuple[Any, ...]:
    return request.priority, request.arrival_time, request.request_id


def _write_small_files(num_bytes: str | None) -> None:
    if num_bytes:
        from stepscope.ingest.recording import row_streams, segments

        for module, name in ((segments, "LARGEST_BYTES"), (row_streams, "LASTING_BYTES")):
            setattr(module, name, int(num_bytes))


def _restore_async(wanted: str | None) -> None:
    """Let a CPU schedule asynchronously: its platform turns that off, whatever was asked for."""
    if not wanted:
        return
    from vllm.platforms.cpu import CpuPlatform

    check = CpuPlatform.check_and_update_config.__func__

    def checked(cls: Any, config: Any) -> None:
        asked = config.scheduler_config.async_scheduling
        check(cls, config)
        config.scheduler_config.async_scheduling = asked

    CpuPlatform.check_and_update_config = classmethod(checked)
