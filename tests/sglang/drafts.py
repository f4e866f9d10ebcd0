"""In the place of SGLang's speculative workers, whose kernels need a GPU: drafts that are right at
random.

The scheduler around it is SGLang's own: what room it keeps for drafts, what it makes of the tokens
that were accepted, whom it retracts. The model runs prefills alone; what a decode step accepts is
drawn by the request's name and how many outputs it has.
"""

# ruff: noqa: PLC0415 - what is the engine's is imported where it is
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import random
from typing import Any


def stand_in() -> None:
    """Let SGLang make this worker for its n-gram drafts."""
    from sglang.srt.managers.utils import GenerationBatchResult
    from sglang.srt.mem_cache import allocation
    from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool
    from sglang.srt.speculative.base_spec_worker import BaseSpecWorker
    from sglang.srt.speculative.ngram_info import NgramVerifyInput
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm
    from torch import int32, int64, ones, tensor, zeros

    class DraftsAtRandom(BaseSpecWorker):  # type: ignore[misc]  # SGLang ships no types
        target_worker: Any = None
        draft_worker = None

        def __init__(self, server_args: Any, target_worker: Any, **_: object) -> None:
            super().__init__()
            type(self).target_worker = target_worker
            self.speculative_num_draft_tokens = server_args.speculative_num_draft_tokens

        def alloc_memory_pool(self, **_: object) -> None:
            """It needs no memory."""

        def clear_cache_pool(self) -> None:
            """It has no cache."""

        def forward_batch_generation(self, batch: Any, **_: object) -> Any:
            width, number = self.speculative_num_draft_tokens, len(batch.reqs)
            logits = None
            if batch.forward_mode.is_decode():
                draws = [random.Random(f"{req.rid} {len(req.output_ids)}") for req in batch.reqs]
                lengths = tensor([draw.randint(1, width) for draw in draws], dtype=int32)
                tokens = tensor([draw.randrange(3, 250) for draw in draws for _ in range(width)],
                                dtype=int64)  # fmt: skip
                new_seq_lens = batch.seq_lens + lengths
                ids = tokens
            else:
                ran = self.target_worker.forward_batch_generation(batch)
                logits, ids = ran.logits_output, ran.next_token_ids
                lengths, new_seq_lens = ones(number, dtype=int32), batch.seq_lens.clone()
                tokens = zeros(number, width, dtype=int64)
                tokens[:, 0] = ids
            return GenerationBatchResult(
                logits_output=logits, next_token_ids=ids, accept_lens=lengths,
                new_seq_lens=new_seq_lens, speculative_num_draft_tokens=width,
                next_draft_input=NgramVerifyInput(
                    draft_token_num=width, new_seq_lens=new_seq_lens,
                    accept_tokens=tokens.flatten(), accept_lens=lengths,
                ),
            )  # fmt: skip

    # Two kernels of Triton's: one that moves what was accepted, and one that writes a table.
    MHATokenToKVPool._init_kv_copy_and_warmup = lambda _: None
    allocation.assign_req_to_token_pool_func = _write_places
    SpeculativeAlgorithm.create_worker = lambda *_: DraftsAtRandom


def _write_places(rows: Any, table: Any, starts: Any, ends: Any, places: Any, _: int) -> None:
    """Write where the KV of each request's tokens lies, from one of its tokens to another."""
    at = 0
    for row, start, end in zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True):
        table[row, start:end] = places[at : at + end - start]
        at += end - start
