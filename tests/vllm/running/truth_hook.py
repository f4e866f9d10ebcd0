"""A plug-in of vLLM that writes down what its scheduler holds, a line of JSON after each step.

It is loaded as `stepscope_truth`, copied out of this checkout, so that it shares no line with what
it is the witness of: nothing here imports stepscope, and all is read off the scheduler's own
objects. `STEPSCOPE_TRUTH` names the folder; each process that has a scheduler writes a file there.
"""

from __future__ import annotations

import json
import os
import time
from functools import wraps
from typing import Any

FOLDER = "STEPSCOPE_TRUTH"


def install() -> None:
    """Wrap the scheduler's two calls of a step, where the folder is named."""
    if os.environ.get(FOLDER):
        _restore_async(os.environ.get("STEPSCOPE_TRUTH_ASYNC"))
        _write_small_files(os.environ.get("STEPSCOPE_TRUTH_FILE_BYTES"))
        from vllm.v1.core.sched.scheduler import Scheduler

        Witness().watch(Scheduler)


class Witness:
    """Writes lines; one `write` each, so that a kill leaves only whole ones."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}

    def watch(self, scheduler: Any) -> None:
        """Wrap `schedule` and `update_from_output` of the class."""
        schedule, update = scheduler.schedule, scheduler.update_from_output

        @wraps(schedule)
        def schedule_seen(this: Any, *args: Any, **kwargs: Any) -> Any:
            output = schedule(this, *args, **kwargs)
            self.write({"after": "schedule", **_held(this), "batch": output.num_scheduled_tokens})
            _misbehave(this.current_step)
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
        "step": scheduler.current_step,
        "t": time.time_ns(),
        "dp": scheduler.vllm_config.parallel_config.data_parallel_index,
        "waiting": [each.request_id for each in _queued(scheduler)],
        "status": {each.request_id: each.status.name for each in scheduler.requests.values()},
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


def _queued(scheduler: Any) -> list[Any]:
    """The waiting queues, in the order in which the scheduler empties them."""
    names = ("kv_holding_waiting", "waiting", "skipped_waiting")
    return [each for name in names for each in getattr(scheduler, name, ())]


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
