"""`torch`: batches run on a real decoder over paged KV, in segments where they are mixed.

The engine says which tokens of which request run, and which blocks it holds; here they are laid
out, staged, split, run, and sampled from. Tokens are taken by position, so it makes no difference
whether a prompt comes whole or in chunks, again after a preemption, or behind a prefix that another
request computed: what is known of the request stands at that position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.profiler import record_function

from stepscope.engine.batch import PREFILL
from stepscope.engine.executors import Digest, Execution
from stepscope.engine.executors.decoding.model_runner import ModelRunner, segment_tag
from stepscope.engine.executors.segments.field_buffers import FieldBuffers, Fields, Values
from stepscope.engine.executors.segments.split import TOKEN_FIELDS, Prepared, Split, plan_of
from stepscope.engine.executors.segments.staging import LENGTHS, Segment
from stepscope.engine.model.cache.inputs import ModelInput
from stepscope.engine.model.cache.kv_cache import KVCache
from stepscope.engine.model.drafts import lookup_draft, num_accepted
from stepscope.engine.model.sampler import Logits

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch, Row
    from stepscope.engine.clock import Clock
    from stepscope.ingest.recorder import Recorder


class TorchDecoder:
    """Runs batches on the decoder of `runner`, with `num_blocks` blocks of `block_size` tokens.

    `split` prepares them, with its faults.
    """

    def __init__(
        self,
        runner: ModelRunner,
        num_blocks: int,
        block_size: int,
        split: Split | None = None,
    ) -> None:
        self.runner = runner
        self._cache = KVCache(runner.decoder.config, num_blocks, block_size, runner.device)
        self._buffers = FieldBuffers(runner.device)
        self._ratios = runner.decoder.config.pooled_ratios
        self._split = split or Split(ratios=self._ratios)

    def run(self, batch: Batch, step: int, clock: Clock, recorder: Recorder | None) -> Execution:
        """Compute `batch`; ExecutionFailed where its metadata do not fit together."""
        began_ns = clock.now_ns()
        if not batch.rows:
            return Execution(clock.advance(1) - began_ns, "torch-dummy", {})
        prepared = self._split.prepare(batch, step, began_ns, recorder)
        with self.runner.step(batch, step, is_halved=prepared.is_halved):
            drafts = [self._drafts(row) for row in batch.rows]
            logits = self._logits(batch, drafts, prepared)
            sampled = self._sample(prepared.sampling, batch, drafts, logits)
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
        of_tokens = self._of_tokens(batch, drafts)
        given = [self._values(segment, of_tokens) for segment in prepared.segments]
        staged = self._buffers.stage(prepared, given)
        hidden = [
            self._run(segment, fields, is_mixed=batch.kind == "mixed")
            for segment, fields in zip(prepared.segments, staged, strict=True)
        ]
        asked = torch.tensor(prepared.logits_tokens, dtype=torch.int64, device=self.runner.device)
        logits: Logits = self.runner.decoder.logits(torch.cat(hidden)[asked]).cpu().numpy()
        return logits

    def _of_tokens(self, batch: Batch, drafts: Sequence[list[int]]) -> dict[str, list[int]]:
        """Return the per-token fields of the whole batch."""
        values: dict[str, list[int]] = {name: [] for name in TOKEN_FIELDS}
        for row, guesses in zip(batch.rows, drafts, strict=True):
            num_known = row.num_tokens - len(guesses)
            tokens = self.runner.streams.tokens(row.request, row.num_computed, num_known)
            if row.reads_placeholder:
                tokens[0] = 0
            values["input_ids"] += tokens + guesses
            values["positions"] += range(row.num_computed, row.num_kv_tokens)
            kv_slots = self._cache.slots(row.request.block_table, row.num_kv_tokens)
            values["slot_mapping"] += kv_slots[row.num_computed :].tolist()
        return values

    def _values(self, segment: Segment, of_tokens: Mapping[str, list[int]]) -> Values:
        """Return the fields of a segment: its share of those of the tokens, and its own."""
        tables = [row.request.block_table for row in segment.rows]
        width = max(map(len, tables))
        lengths = [row.num_kv_tokens for row in segment.rows]
        return {
            LENGTHS: None if segment.fields[LENGTHS] is None else segment.cu_lens,
            **{name: self._share(segment, name, of_tokens[name]) for name in TOKEN_FIELDS},
            "block_tables": [
                block for table in tables for block in (*table, *[0] * (width - len(table)))
            ],
            **{
                plan_of(ratio): [
                    row for row, length in enumerate(lengths) for _ in range(length // ratio)
                ]
                for ratio in self._ratios
                if plan_of(ratio) in segment.fields
            },
        }

    def _share(self, segment: Segment, name: str, values: list[int]) -> list[int] | None:
        tokens = segment.fields[name]
        return None if tokens is None else values[tokens.start : tokens.stop]

    def _run(self, segment: Segment, fields: Fields, *, is_mixed: bool) -> Tensor:
        missing = [name for name, entries in fields.items() if entries is None]
        if missing:
            raise ValueError(f"the {segment.phase} segment has no {', '.join(missing)}")
        held = {name: entries for name, entries in fields.items() if entries is not None}
        tables = held["block_tables"].view(len(segment.rows), -1).tolist()
        lengths = [row.num_kv_tokens for row in segment.rows]
        given = ModelInput(
            **{name: held[name] for name in TOKEN_FIELDS},
            cu_lens=held[LENGTHS].tolist(),
            kv_slots=[self._cache.slots(*each) for each in zip(tables, lengths, strict=True)],
            is_prefill=segment.phase == PREFILL,
            num_pooled={
                ratio: _pooled(held[plan_of(ratio)], len(lengths))
                for ratio in self._ratios
                if plan_of(ratio) in held
            },
            slots=(),
        )
        # Within the span of a mixed step each part has its own tag, as in ATOM's profiles.
        name = segment_tag(segment.phase, segment.rows) if is_mixed else f"{segment.phase} segment"
        with record_function(name):
            hidden: Tensor = self.runner.decoder(given, self._cache)
        return hidden

    def _sample(
        self,
        sampling: Sequence[Row],
        batch: Batch,
        drafts: Sequence[list[int]],
        logits: Logits,
    ) -> dict[str, list[tuple[int, Digest]]]:
        """Give each row that samples its rows of logits, in order; the last one serves the rest."""
        guessed = {id(row): guesses for row, guesses in zip(batch.rows, drafts, strict=True)}
        sampled, taken = {}, 0
        for row in sampling:
            guesses = guessed[id(row)]
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


def _pooled(plan: Tensor, num_rows: int) -> list[int]:
    """Return how many blocks of its history each row sees as a plan has it."""
    rows = plan.tolist()
    return [rows.count(row) for row in range(num_rows)]
