"""`torch` for slots: the rows of `ragged` on a real decoder, one KV region for each slot.

The mirror is a second cache, so a commit that was not refreshed takes live slots back to what the
mirror last saw, and a slot that is not cleared keeps its length, and with it what is written there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import torch

from stepscope.engine.executors.decoding.model_runner import ModelRunner
from stepscope.engine.executors.slot_model import Sampled, slot_of
from stepscope.engine.model.cache.inputs import ModelInput
from stepscope.engine.model.cache.kv_cache import KVCache
from stepscope.engine.model.cache.row_tokens import RowTokens
from stepscope.engine.model.sampler import Logits

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch, Row
    from stepscope.engine.clock import Clock
    from stepscope.engine.memory.slot_memory import Layout


class DecodedSlots:
    """Computes the slots of `layout` on the decoder of `runner`.

    With `is_mirrored` prompts are written to a mirror of all slots. Without `clears` a slot's
    length is never set back.
    """

    name = "torch-"

    def __init__(
        self, runner: ModelRunner, layout: Layout, *, is_mirrored: bool, clears: bool = True
    ) -> None:
        self.runner = runner
        config, shape = runner.decoder.config, (layout.num_slots, layout.slot_tokens)
        self._cache = KVCache(config, *shape, runner.device)
        self._mirror = KVCache(config, *shape, runner.device, fill=0.0) if is_mirrored else None
        self._clears = clears
        self._lengths = [0] * layout.num_slots

    def step(self, batch: Batch, step: int, clock: Clock) -> AbstractContextManager[None]:
        """Tag the step for the profiler."""
        del clock
        return self.runner.step(batch, step)

    def refresh(self, num_bytes: int) -> None:
        """Copy the cache to the mirror."""
        if self._mirror:
            self._mirror.copy_from(self._cache)

    def commit(self, num_bytes: int) -> None:
        """Copy the mirror to the cache."""
        if self._mirror:
            self._cache.copy_from(self._mirror)

    def prefill(self, row: Row, slot: int) -> Sampled:
        """Compute a prompt into a slot, of the mirror where there is one."""
        tokens = self.runner.streams.prompt(row.request)
        cache = self._mirror or self._cache
        given = ModelInput.of(cache, [RowTokens(tokens, 0, [slot])], is_prefill=True)
        hidden = self.runner.decoder(given, cache)[-1:]
        left_behind = 0 if self._clears else self._lengths[slot]
        self._lengths[slot] = max(left_behind, len(tokens))
        return self._sample(row, self.runner.decoder.logits(hidden)[0].cpu().numpy())

    def decode(self, live: Sequence[Row]) -> list[Sampled]:
        """Compute every slot's row; a masked one has token, position and length 0."""
        places = [0] * len(self._lengths)
        tokens = [0] * len(self._lengths)
        for row in live:
            slot = slot_of(row)
            places[slot] = row.num_kv_tokens - 1
            (tokens[slot],) = self.runner.streams.tokens(row.request, places[slot], 1)
            self._lengths[slot] = max(self._lengths[slot], row.num_kv_tokens)
        hidden = self.runner.decoder(self._ragged(live, places, tokens), self._cache)
        logits = self.runner.decoder.logits(hidden).cpu().numpy()
        return [self._sample(row, logits[slot_of(row)], row.num_fed_back) for row in live]

    def _ragged(
        self, live: Sequence[Row], places: Sequence[int], tokens: Sequence[int]
    ) -> ModelInput:
        slots = {slot_of(row) for row in live}
        lengths = [length if slot in slots else 1 for slot, length in enumerate(self._lengths)]
        kv_slots = [self._cache.slots([slot], length) for slot, length in enumerate(lengths)]
        mapping = [cached[place] for cached, place in zip(kv_slots, places, strict=True)]
        device = self.runner.device
        return ModelInput(
            torch.tensor(tokens, device=device),
            torch.tensor(places, device=device),
            torch.stack(mapping),
            range(len(places) + 1),
            kv_slots,
            is_prefill=False,
        )

    def _sample(self, row: Row, logits: Logits, place: int = 0) -> Sampled:
        token, name = self.runner.sample(row.request, logits, place)
        self.runner.streams.put(row.request, [token], place)
        return token, name
