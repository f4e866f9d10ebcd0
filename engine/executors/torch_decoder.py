"""`torch`: batches run on a real decoder over paged KV, in segments where they are mixed.

The engine says which tokens of which request run, and which blocks it holds; here they are laid
out, staged, split, run, and sampled from. Tokens are taken by position, so it makes no difference
whether a prompt comes whole or in chunks, again after a preemption, or behind a prefix that another
request computed: what is known of the request stands at that position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.profiler import record_function

from stepscope.engine.batch import PREFILL
from stepscope.engine.executors import Digest, Execution
from stepscope.engine.executors.field_buffers import FieldBuffers, Fields
from stepscope.engine.executors.model_runner import ModelRunner
from stepscope.engine.executors.split import Prepared, Segment, Split
from stepscope.engine.model.drafts import lookup_draft, num_accepted
from stepscope.engine.model.inputs import ModelInput
from stepscope.engine.model.kv_cache import KVCache
from stepscope.engine.model.sampler import Logits

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch, Row
    from stepscope.engine.clock import Clock
    from stepscope.ingest.recorder import Recorder


class TorchDecoder:
    """Runs batches on the decoder of `runner`, with `num_blocks` blocks of `block_size` tokens.

    A step has at most `max_tokens` tokens. `split` prepares them, with its faults.
    """

    def __init__(
        self,
        runner: ModelRunner,
        num_blocks: int,
        block_size: int,
        max_tokens: int,
        split: Split | None = None,
    ) -> None:
        self.runner = runner
        self._cache = KVCache(runner.decoder.config, num_blocks, block_size, runner.device)
        self._buffers = FieldBuffers(max_tokens, runner.device)
        self._split = split or Split()

    def run(self, batch: Batch, step: int, clock: Clock, recorder: Recorder | None) -> Execution:
        """Compute `batch`; ExecutionFailed where its metadata do not fit together."""
        began_ns = clock.now_ns()
        if not batch.rows:
            return Execution(clock.advance(1) - began_ns, "torch-dummy", {})
        prepared = self._split.prepare(batch, step, began_ns, recorder)
        with self.runner.step(batch, step):
            drafts = [self._drafts(row) for row in batch.rows]
            logits = self._logits(batch, drafts, prepared)
            sampled = self._sample(batch, drafts, logits)
        return Execution(
            clock.now_ns() - began_ns,
            f"torch-{prepared.path}",
            {request: tuple(token for token, _ in each) for request, each in sampled.items()},
            len(prepared.logits_tokens),
            {request: tuple(name for _, name in each) for request, each in sampled.items()},
        )

    def snapshot(self) -> dict[str, Any]:
        """Return nothing: the engine itself knows who has which block."""
        return {}

    def _drafts(self, row: Row) -> list[int]:
        known = self.runner.streams.known(row.request)
        return lookup_draft(known, row.num_draft) if row.num_draft else []

    def _logits(self, batch: Batch, drafts: Sequence[list[int]], prepared: Prepared) -> Logits:
        slots = [self._slots(row) for row in batch.rows]
        staged = self._buffers.stage(prepared, self._values(batch, drafts, slots))
        hidden = [
            self._run(segment, fields, slots[segment.first_row :])
            for segment, fields in zip(prepared.segments, staged, strict=True)
        ]
        asked = torch.tensor(prepared.logits_tokens, dtype=torch.int64, device=self.runner.device)
        logits: Logits = self.runner.decoder.logits(torch.cat(hidden)[asked]).cpu().numpy()
        return logits

    def _values(
        self, batch: Batch, drafts: Sequence[list[int]], slots: Sequence[Tensor]
    ) -> dict[str, list[int]]:
        values: dict[str, list[int]] = {"input_ids": [], "positions": [], "slot_mapping": []}
        for row, guesses, kv_slots in zip(batch.rows, drafts, slots, strict=True):
            num_known = row.num_tokens - len(guesses)
            tokens = self.runner.streams.tokens(row.request, row.num_computed, num_known)
            if row.reads_placeholder:
                tokens[0] = 0
            values["input_ids"] += tokens + guesses
            values["positions"] += range(row.num_computed, row.num_kv_tokens)
            values["slot_mapping"] += kv_slots[row.num_computed :].tolist()
        return values

    def _run(self, segment: Segment, fields: Fields, slots: Sequence[Tensor]) -> Tensor:
        missing = [name for name, tokens in fields.items() if tokens is None]
        if missing:
            raise ValueError(f"the {segment.phase} segment has no {', '.join(missing)}")
        given = ModelInput(
            **{name: tokens for name, tokens in fields.items() if tokens is not None},
            cu_lens=segment.cu_lens,
            kv_slots=slots[: len(segment.rows)],
            is_prefill=segment.phase == PREFILL,
        )
        with record_function(f"{segment.phase} segment"):
            hidden: Tensor = self.runner.decoder(given, self._cache)
        return hidden

    def _slots(self, row: Row) -> Tensor:
        return self._cache.slots(row.request.block_table, row.num_kv_tokens)

    def _sample(
        self, batch: Batch, drafts: Sequence[list[int]], logits: Logits
    ) -> dict[str, list[tuple[int, Digest]]]:
        """Give each row that samples its rows of logits, in order; the last one serves the rest."""
        sampled, taken = {}, 0
        for row, guesses in zip(batch.rows, drafts, strict=True):
            if not row.samples:
                continue
            places = range(taken, taken + 1 + len(guesses))
            own = [
                self.runner.sample(row.request, logits[min(place, len(logits) - 1)], place - taken)
                for place in places
            ]
            taken += len(places)
            accepted = own[: 1 + num_accepted(guesses, [token for token, _ in own])]
            self.runner.streams.put(row.request, [token for token, _ in accepted])
            sampled[row.request.id] = accepted
        return sampled
