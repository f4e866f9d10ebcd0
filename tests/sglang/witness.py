"""Writes down what SGLang's scheduler holds, a line of JSON for each batch that it has formed.

Nothing here imports stepscope, and all is read off the scheduler's own objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import wraps
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class Witness:
    """Wraps the two calls of a step, around whatever plug-ins have put there."""

    def __init__(self, scheduler: Any, path: Path) -> None:
        self.num_formed = 0
        self.ended: set[str] = set()
        self._file = path.open("w", encoding="utf-8")
        form, process = scheduler.get_next_batch_to_run, scheduler.process_batch_result

        @wraps(form)
        def formed(this: Any, *args: Any, **kwargs: Any) -> Any:
            plan = form(this, *args, **kwargs)
            if plan.batch_to_run is not None and plan.batch_to_run.reqs:
                self.num_formed += 1
                self._write({"after": "schedule", **held(this, plan)})
            return plan

        @wraps(process)
        def processed(this: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
            had = {req.rid: _visible(req) for req in batch.reqs}
            were_right = {req.rid: req.spec_num_correct_drafts for req in batch.reqs}
            process(this, batch, *args, **kwargs)
            given = {req.rid: _visible(req) - had[req.rid] for req in batch.reqs}
            right = {req.rid: req.spec_num_correct_drafts - were_right[req.rid]
                     for req in batch.reqs}  # fmt: skip
            ended = {req.rid: type(req.finished_reason).__name__ for req in batch.reqs
                     if req.finished()}  # fmt: skip
            self.ended |= set(ended)
            self._write({"after": "outputs", "given": given, "right": right, "ended": ended})

        scheduler.get_next_batch_to_run, scheduler.process_batch_result = formed, processed

    def close(self) -> None:
        """Write all of it."""
        self._file.close()

    def _write(self, line: Row) -> None:
        self._file.write(json.dumps(line) + "\n")


def held(scheduler: Any, plan: Any) -> Row:
    """What is held when a batch was formed, and not run yet."""
    batch, going_on = plan.batch_to_run, plan.running_batch.reqs
    under_way = [req for each, _ in getattr(scheduler, "result_queue", ()) for req in each.reqs]
    chunked = [scheduler.chunked_req] if scheduler.chunked_req else []
    present = {req.rid: req for req in (*batch.reqs, *going_on, *chunked, *under_way)
               if not req.finished() and req.kv.req_pool_idx is not None}  # fmt: skip
    allocator, tree = scheduler.token_to_kv_pool_allocator, scheduler.tree_cache
    compiling = [req.rid for req in scheduler.grammar_manager.grammar_queue]
    free = set(allocator.get_all_free_pages().tolist())
    return {
        "waiting": [*(req.rid for req in scheduler.waiting_queue), *compiling],
        "compiling": compiling,
        "running": sorted(present),
        "decoding": sorted(req.rid for req in going_on),
        "chunked": [req.rid for req in chunked],
        "batch": dict(_tokens(scheduler, batch)),
        "pages": {name: _pages(scheduler, req.kv) for name, req in present.items()}
        | _of_sessions(scheduler, [req.kv for req in present.values()]),
        "free": len(free),
        "locked": tree.protected_size(),
        "evictable": tree.evictable_size(),
        "is_full": plan.running_batch.batch_is_full,
        "ratio": scheduler.new_token_ratio_tracker.current,
        "slots": scheduler.req_to_token_pool.available_size(),
        "is_extend": batch.forward_mode.is_extend(),
        "queued": {
            req.rid: len(req.origin_input_ids) + len(req.output_ids)
            for req in scheduler.waiting_queue
        },
        "loras": [req.lora_id for req in (*batch.reqs, *going_on)],
        "most_loras": scheduler.max_loras_per_batch,
        "lora_of": {req.rid: req.lora_id for req in scheduler.waiting_queue},
        "draining": _draining(scheduler),
        "most_running": scheduler.max_running_requests,
        "most_prefills": scheduler.server_args.prefill_max_requests,
        "most_prefill_tokens": min(
            each
            for each in (scheduler.max_prefill_tokens, scheduler.chunked_prefill_size)
            if each and each > 0
        ),
        "total": len(free) * allocator.page_size + tree.evictable_size(),
    }


def _visible(req: Any) -> int:
    """How many outputs a client gets: of drafts that were right, some may lie behind the end."""
    return len(req.output_ids) if req.finished_len is None else req.finished_len


def _tokens(scheduler: Any, batch: Any) -> Iterator[tuple[str, int]]:
    of_decode = getattr(scheduler.draft_worker, "speculative_num_draft_tokens", 1)
    decoding = {req.rid for req in batch.decoding_reqs or ()}
    for req in batch.reqs:
        is_prefill = batch.forward_mode.is_extend() and req.rid not in decoding
        yield req.rid, req.extend_end - req.prefix_len if is_prefill else of_decode


def _draining(scheduler: Any) -> list[str | None]:
    """Adapters that take hardly anybody more, until another one has their place."""
    known = scheduler.lora_drainer.adapter_to_stats if scheduler.lora_drainer else {}
    return [adapter for adapter, stats in known.items() if stats.is_draining_for]


def _of_sessions(scheduler: Any, lent: list[Any]) -> dict[str, list[int]]:
    """Pages that sessions keep between their turns: none of a request has them."""
    kept = getattr(getattr(scheduler.tree_cache, "session", None), "slots", {})
    return {
        f"session {name}": _pages(scheduler, slot.kv)
        for name, slot in kept.items()
        if slot.kv.req_pool_idx is not None and not any(slot.kv is each for each in lent)
    }


def _pages(scheduler: Any, kv: Any) -> list[int]:
    """Pages of a request, from the first to the last of its tokens, by the table of the pool."""
    table = scheduler.req_to_token_pool.req_to_token[kv.req_pool_idx]
    tokens = table[: kv.kv_allocated_len].tolist()
    return sorted({token // scheduler.token_to_kv_pool_allocator.page_size for token in tokens})
