"""The rows and counts of a batch that an SGLang scheduler has formed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from stepscope.ingest.attach.scheduler_recording import Counts, Gave
from stepscope.ingest.recording.lasting import BatchRow

_KINDS = (("idle", "decode"), ("prefill", "mixed"))


class Rows:
    """Of each request the position of its next output, and how much of it is computed."""

    def __init__(self, scheduler: Any) -> None:
        self._scheduler = scheduler
        self._positions: dict[str, int] = {}
        self._computed: dict[str, int] = {}
        self._right: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._positions

    @property
    def width(self) -> int:
        """How many tokens of each request a step with drafts computes; 0 where there are none."""
        worker = getattr(self._scheduler, "draft_worker", None)
        return int(getattr(worker, "speculative_num_draft_tokens", None) or 0)

    def gave(self, req: Any) -> Gave:
        """What a step with drafts gave a request, by what it has now: all that its client gets."""
        name, right = req.rid, req.spec_num_correct_drafts
        number = len(req.output_ids) if req.finished_len is None else req.finished_len
        first, before = self._positions[name], self._right.get(name, 0)
        self._positions[name], self._right[name] = number, right
        return Gave(name, first, max(number - first, 0), right - before)

    def arrived(self, name: str) -> None:
        """A request came that has given nothing yet."""
        self._positions[name] = 0

    def forget(self, name: str) -> None:
        """A request has ended."""
        self._positions.pop(name, None)
        self._computed.pop(name, None)
        self._right.pop(name, None)

    def of(self, batch: Any, admitted: Collection[str], again: Collection[str]) -> list[BatchRow]:
        """The rows of a batch; `again`: who was put back before and computes anew."""
        is_extend = batch.forward_mode.is_extend()
        if self.width and not is_extend:
            return [self._draft(req) for req in batch.reqs]
        decodes = {req.rid for req in batch.decoding_reqs or ()} if is_extend else None
        return [
            self._decode(req)
            if decodes is None or req.rid in decodes
            else self._prefill(req, batch, req.rid in admitted, req.rid in again)
            for req in batch.reqs
        ]

    def _decode(self, req: Any) -> BatchRow:
        name = req.rid
        position, computed = self._positions[name], self._computed[name]
        self._positions[name], self._computed[name] = position + 1, computed + 1
        return BatchRow(name, "decode", 1, computed, position, len(req.origin_input_ids))

    def _draft(self, req: Any) -> BatchRow:
        """A row with drafts. Where steps overlap, those before it are not taken yet, and nobody
        knows how many tokens it has.
        """
        prompt_len, width = len(req.origin_input_ids), self.width
        computed = None
        if not self._scheduler.enable_overlap:
            computed = prompt_len + self._positions[req.rid] - 1
        return BatchRow(req.rid, "decode", width, computed, None, prompt_len, num_draft=width - 1)

    def _prefill(self, req: Any, batch: Any, is_first: bool, is_again: bool) -> BatchRow:
        name, is_final = req.rid, batch.chunked_req is not req
        if is_first:
            self._positions[name] = len(req.output_ids)
        position = self._positions[name] if is_final else None
        self._positions[name] += is_final
        self._computed[name] = req.prefix_len + req.extend_len
        return BatchRow(
            name, "prefill", req.extend_len, req.prefix_len, position, len(req.origin_input_ids),
            req.prefix_len if is_first else None, is_final_chunk=is_final,
            is_recompute=True if is_again else None,
        )  # fmt: skip


def counts_of(scheduler: Any, rows: list[BatchRow], num_running: int, num_waiting: int) -> Counts:
    """What is known of a step; pages of KV that nobody holds are free, though some are cached.

    The size of chunks bounds a batch; `max_prefill_tokens` is passed by a last, whole prompt.
    """
    size = scheduler.token_to_kv_pool_allocator.page_size
    prefills = [row.num_tokens for row in rows if row.phase == "prefill"]
    decodes = [row.num_tokens for row in rows if row.phase != "prefill"]
    num_decodes = len(decodes)
    free = scheduler.token_to_kv_pool_allocator.available_size()
    cached = scheduler.tree_cache.evictable_size()
    return Counts(
        kind=_KINDS[bool(prefills)][bool(num_decodes)],
        num_prefill_reqs=len(prefills),
        num_decode_reqs=num_decodes,
        num_prefill_tokens=sum(prefills),
        num_decode_tokens=sum(decodes),
        token_budget=scheduler.chunked_prefill_size if prefills else None,
        num_waiting=num_waiting,
        num_running=num_running,
        kv_blocks_free=(free + cached) // size,
        kv_blocks_total=scheduler.max_total_num_tokens // size,
        kv_blocks_cached=cached // size,
        reserve_ratio=scheduler.new_token_ratio_tracker.current,
    )
