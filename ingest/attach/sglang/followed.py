"""What is told of an SGLang scheduler at each of its calls."""

from __future__ import annotations

import atexit
import os
from collections import deque
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Any, NamedTuple

from stepscope.ingest.attach.hooks import Hooks, log
from stepscope.ingest.attach.recorded import RecordedScheduler
from stepscope.ingest.attach.sglang.alike import Alike
from stepscope.ingest.attach.sglang.settings import config_of
from stepscope.ingest.attach.sglang.waits import Reasons
from stepscope.ingest.attach.telling import Counts, LeftOut, Step
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.lasting import BatchRow

ATTACHED = "_stepscope"
RETRACTED = "retracted: the KV cache has no room for the next tokens of those that run"
PREEMPTED = "preempted: a request of higher priority takes its room"
_asking: list[Any] = []
"""Whose scheduler forms a batch in this process: what admits prefills does not know it."""


class Formed(NamedTuple):
    """A step under way: its requests, and the position of the output that each is to give."""

    step: Step
    requests: list[Any]
    positions: list[int | None]


def attached_to(scheduler: Any) -> SGLangScheduler | None:
    """Give what follows a scheduler, from its first call on; None where it cannot be followed."""
    found = scheduler.__dict__.get(ATTACHED, scheduler)
    if found is not scheduler:
        return found  # type: ignore[no-any-return]
    attached: SGLangScheduler | None = None
    try:
        attached = _attach(scheduler)
    except Exception:
        log.warning("stepscope cannot record this scheduler", exc_info=True)
    setattr(scheduler, ATTACHED, attached)
    return attached


def asking() -> SGLangScheduler | None:
    """Give what follows the scheduler that forms a batch just now."""
    return _asking[-1] if _asking else None


def _attach(scheduler: Any) -> SGLangScheduler | None:
    from sglang.srt.runtime_context import (  # noqa: PLC0415
        get_parallel,
    )

    if get_parallel().attn_tp_rank or get_parallel().pp_rank:
        return None  # the first of those that decide alike is recorded
    if not scheduler.spec_algorithm.is_none():
        log.warning("stepscope does not record SGLang's speculative decoding")
        return None
    recorder = Recorder.under(
        os.environ["STEPSCOPE_TRACE"], producer="sglang", producer_version=version(),
        rank=get_parallel().dp_rank or 0,
        config=config_of(scheduler),
    )  # fmt: skip
    attached = SGLangScheduler(scheduler, RecordedScheduler(recorder))
    atexit.register(attached.telling.close)
    return attached


def version() -> str:
    """Give SGLang's version, or an empty text."""
    try:
        return version_of("sglang")
    except PackageNotFoundError:
        return ""


class SGLangScheduler:
    """Follows one scheduler; everything here is called by the thread that runs it."""

    def __init__(self, scheduler: Any, telling: RecordedScheduler) -> None:
        self.telling = telling
        self.hooks = Hooks(telling.failed)
        self._scheduler = scheduler
        self._reasons = Reasons(scheduler)
        self._waiting: dict[str, Any] = {}
        self._lost: set[str] = set()
        self._positions: dict[str, int] = {}
        self._computed: dict[str, int] = {}
        self._order: list[str] = []
        self._last: list[str] | None = None
        self._under_way: deque[Formed] = deque()
        self._ended: set[str] = set()
        self._alike = Alike()

    def close(self) -> None:
        """Stop telling, and close the recording."""
        self.hooks.is_stopped = True
        self.telling.close()

    # ── requests come and go ─────────────────────────────────────────────────────────────────

    def add_request_to_queue(self, _: object, req: Any, is_retracted: bool = False) -> None:
        """Tell that a request came to the queue, or came back to it."""
        if not any(req is each for each in self._scheduler.waiting_queue[-1:]):
            return  # refused, or waiting elsewhere
        ts_ns, name = self.telling.now_ns(), req.rid
        self._waiting[name] = req
        self._order.append(name)
        if name not in self._positions:
            self._arrived(ts_ns, req)
            return
        cause = RETRACTED if is_retracted else PREEMPTED
        self._lost.add(name)
        self._reasons.forget(name)
        self.telling.event(
            "preempt", name, ts_ns, cause=cause, num_generated=len(req.output_ids),
            queue_index=len(self._order) - 1,
        )  # fmt: skip
        self.telling.decided(ts_ns, "preempted", LeftOut(name, "kv-token", cause))

    def _arrived(self, ts_ns: int, req: Any) -> None:
        self._positions[req.rid] = 0
        self._ended.discard(req.rid)
        alike, num_alike = self._alike.of(req.rid, req.origin_input_ids)
        self.telling.event(
            "arrive", req.rid, ts_ns, queue_index=len(self._order) - 1,
            prompt_len=len(req.origin_input_ids), max_tokens=req.sampling_params.max_new_tokens,
            num_generated=0, priority=req.priority, alike=alike, num_alike=num_alike,
        )  # fmt: skip

    def abort_request(self, *_: object, **__: object) -> None:
        """Tell which waiting requests are gone: those that run end with a step."""
        here = {req.rid for req in self._scheduler.waiting_queue}
        for name in [name for name in self._waiting if name not in here]:
            self._end(self.telling.now_ns(), self._waiting[name], "abort", "aborted in the queue")

    # ── a batch is formed ────────────────────────────────────────────────────────────────────

    def forming(self) -> None:
        """Begin to look at who is admitted, and what keeps others from it."""
        _asking.append(self)
        self._reasons.begin()

    def should_defer_prefill(self, is_deferred: bool, *_: object, **__: object) -> None:
        """Note that prefills are held back."""
        self._reasons.is_deferred = is_deferred

    def tried(self, adder: Any, req: Any, result: Any) -> None:
        """Note what came of a request that was to be admitted."""
        self._reasons.tried(adder, req, result)

    def looked_at_budget(self, result: Any) -> None:
        """Note whether the batch may take more prefills."""
        self._reasons.is_spent |= result.name == "OTHER"

    def formed(self, plan: Any) -> None:
        """Tell the batch, who was admitted, and why others were not."""
        _asking.pop()
        ts_ns, batch = self.telling.now_ns(), plan.batch_to_run
        queue = [req.rid for req in self._scheduler.waiting_queue]
        admitted = [name for name in self._waiting if name not in {*queue}]
        if batch is not None and batch.reqs:
            self._under_way.append(self._tell_batch(ts_ns, plan, batch, admitted))
        self._order = [name for name in self._order if name not in admitted]
        for name in admitted:
            self._tell_admitted(ts_ns, self._waiting.pop(name))
        if queue != self._order:
            self.telling.queue_order(ts_ns, queue)
            self._order = queue
        left = self._reasons.of(self._scheduler.waiting_queue, plan.running_batch)
        self.telling.left_out(ts_ns, left)

    def _tell_admitted(self, ts_ns: int, req: Any) -> None:
        event = "resume" if req.rid in self._lost else "admit"
        self._lost.discard(req.rid)
        self._reasons.forget(req.rid)
        self.telling.event(event, req.rid, ts_ns, num_generated=len(req.output_ids))

    def _tell_batch(self, ts_ns: int, plan: Any, batch: Any, admitted: list[str]) -> Formed:
        is_extend = batch.forward_mode.is_extend()
        decodes = {req.rid for req in batch.decoding_reqs or ()} if is_extend else None
        rows = [
            self._decode_row(req)
            if decodes is None or req.rid in decodes
            else self._prefill_row(req, batch, is_first=req.rid in admitted)
            for req in batch.reqs
        ]
        names, counts = [row.request for row in rows], self._counts(plan, rows)
        if not is_extend and names == self._last:
            step = self.telling.formed_again(ts_ns, counts)
        else:
            step = self.telling.formed(ts_ns, rows, counts)
        is_whole = all(row.position is not None for row in rows)
        self._last = names if is_whole else None
        return Formed(step, list(batch.reqs), [row.position for row in rows])

    def _decode_row(self, req: Any) -> BatchRow:
        name, computed = req.rid, self._computed[req.rid]
        position = self._positions[name]
        self._positions[name], self._computed[name] = position + 1, computed + 1
        return BatchRow(name, "decode", 1, computed, position, len(req.origin_input_ids))

    def _prefill_row(self, req: Any, batch: Any, *, is_first: bool) -> BatchRow:
        name, is_final = req.rid, batch.chunked_req is not req
        if is_first:
            self._positions[name] = len(req.output_ids)
        position = self._positions[name] if is_final else None
        self._positions[name] += is_final
        self._computed[name] = req.prefix_len + req.extend_len
        return BatchRow(
            name, "prefill", req.extend_len, req.prefix_len, position, len(req.origin_input_ids),
            req.prefix_len if is_first else None, is_final_chunk=is_final,
            is_recompute=True if name in self._lost else None,
        )  # fmt: skip

    def _counts(self, plan: Any, rows: list[BatchRow]) -> Counts:
        scheduler, page = self._scheduler, self._scheduler.page_size
        prefills = [row.num_tokens for row in rows if row.phase == "prefill"]
        num_decodes = len(rows) - len(prefills)
        kinds = (("idle", "decode"), ("prefill", "mixed"))
        free = scheduler.token_to_kv_pool_allocator.available_size()
        cached = scheduler.tree_cache.evictable_size()
        running = {req.rid for req in plan.running_batch.reqs} | {row.request for row in rows}
        return Counts(
            kind=kinds[bool(prefills)][bool(num_decodes)],
            num_prefill_reqs=len(prefills),
            num_decode_reqs=num_decodes,
            num_prefill_tokens=sum(prefills),
            num_decode_tokens=num_decodes,
            token_budget=scheduler.max_prefill_tokens if prefills else None,
            num_waiting=len(scheduler.waiting_queue),
            num_running=len(running),
            kv_blocks_free=(free + cached) // page,
            kv_blocks_total=scheduler.max_total_num_tokens // page,
            kv_blocks_cached=cached // page,
            reserve_ratio=scheduler.new_token_ratio_tracker.current,
        )

    # ── outputs ──────────────────────────────────────────────────────────────────────────────

    def process_batch_result(self, _: object, batch: Any, *__: object, **___: object) -> None:
        """Tell which requests gave an output, and which have ended."""
        if not batch.reqs or not self._under_way:
            return
        ts_ns, formed = self.telling.now_ns(), self._under_way.popleft()
        told = zip(formed.requests, formed.positions, strict=True)
        without = [
            req.rid for req, position in told
            if position is not None and len(req.output_ids) <= position
        ]  # fmt: skip
        self.telling.ended(formed.step, ts_ns, without)
        if without:
            self._last = None
        for req in formed.requests:
            if req.finished() and req.rid not in self._ended:
                reason = type(req.finished_reason).__name__
                is_abort = reason == "FINISH_ABORT"
                self._end(ts_ns, req, "abort" if is_abort else "finish", reason.lower())

    def _end(self, ts_ns: int, req: Any, event: str, cause: str) -> None:
        name = req.rid
        self._ended.add(name)
        self._waiting.pop(name, None)
        self._order = [each for each in self._order if each != name]
        self._reasons.forget(name)
        self._lost.discard(name)
        self._positions.pop(name, None)
        self._computed.pop(name, None)
        alike, num_alike = self._alike.of(name, [*req.origin_input_ids, *req.output_ids])
        self.telling.event(
            event, name, ts_ns, cause=cause, num_generated=len(req.output_ids), alike=alike,
            num_alike=num_alike,
        )  # fmt: skip
