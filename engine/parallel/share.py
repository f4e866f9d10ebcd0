"""What a rank holds of the model: all of it but the experts, of which it owns some.

Attention and its KV are the same on every rank, so each rank knows by itself how far each slot has
got. Ranks that disagree about that compute their experts' parts from different hidden states, and
the sum of them is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from stepscope.engine.model.config import ModelConfig
from stepscope.engine.model.decoder import Decoder
from stepscope.engine.model.inputs import ModelInput, RowTokens
from stepscope.engine.model.kv_cache import KVCache
from stepscope.engine.parallel.access_log import AccessLog
from stepscope.engine.parallel.config import GROUPED_GEMM, ParallelConfig
from stepscope.engine.parallel.costs import GROUPED, PER_TOKEN, Costs, decode_path
from stepscope.engine.parallel.experts import ShardedExperts
from stepscope.engine.parallel.link import Link
from stepscope.engine.parallel.protocol import ProtocolError


def decoder_of(seed: int) -> Decoder:
    """Return the model that every rank has: two layers, eight experts, two for each token.

    Its vocabulary is so small that what it says repeats itself, and can be guessed at times.
    """
    sizes = ModelConfig(vocab_size=16, num_experts=8, experts_per_token=2, seed=seed)
    return Decoder(sizes)


class Share:
    """One rank's part in every forward pass; `lengths` says how many tokens each slot holds.

    `path` is how the experts of the last pass were run, and `num_rows` for how many rows. `spend`
    lets virtual time pass, and does nothing where time is real.
    """

    def __init__(
        self,
        config: ParallelConfig,
        link: Link,
        log: AccessLog,
        spend: Callable[[int], object],
        costs: Costs,
    ) -> None:
        self.num_slots = config.num_slots
        self.slot_tokens = config.slot_tokens
        self.lengths = [0] * config.num_slots
        self.path = ""
        self.num_rows = 0
        self._link = link
        self._log = log
        self._costs = costs
        self._is_grouped = config.experts == GROUPED_GEMM
        self._slowness = 1 + ("slow-worker" in config.faults and link.rank > 0)
        self._is_unreached = "path-never-reached" in config.faults
        self._decoder = decoder_of(config.seed)
        self._cache = KVCache(self._decoder.config, config.num_slots, config.slot_tokens)
        self._experts = ShardedExperts(
            self._decoder.moe_layers, link, log, spend,
            shares_scratch="scratch-shared" in config.faults,
        )  # fmt: skip
        self._decoder.experts = self._experts

    @property
    def vocab_size(self) -> int:
        """Number of different tokens."""
        return self._decoder.config.vocab_size

    def begin(self, step: int) -> None:
        """Write what happens from now on as of `step`."""
        self._link.step = self._log.step = step

    def free(self, slot: int) -> None:
        """Forget what a slot holds."""
        self.lengths[slot] = 0

    def trim(self, slot: int, num_tokens: int) -> None:
        """Forget the last `num_tokens` tokens of a slot."""
        self.lengths[slot] -= num_tokens

    def move(self, source: int, target: int) -> None:
        """Let slot `target` hold what `source` holds, and `source` nothing."""
        whole = [self._cache.slots([slot], self.slot_tokens) for slot in (source, target)]
        for layer in range(self._decoder.config.num_layers):
            self._cache.write(layer, whole[1], *self._cache.read(layer, whole[0]))
        self.lengths[target], self.lengths[source] = self.lengths[source], 0

    def prefill(self, slot: int, start: int, tokens: Sequence[int]) -> Tensor:
        """Compute a chunk of a prompt from position `start`; return its last token's logits."""
        self.lengths[slot] = start
        hidden = self._forward(
            [slot], [tokens], GROUPED, self._costs.prefill_ns, None, is_prefill=True
        )
        return self._decoder.logits(hidden[-1:])[0]

    def decode(
        self, slots: Sequence[int], tokens: Sequence[int], segments: Sequence[int] | None = None
    ) -> Tensor:
        """Decode a token of each slot; return a row of logits for each, [rows, vocab_size].

        `segments` are their rows of the batch, where they are not its first ones.
        """
        num_rows = len(slots)
        path = PER_TOKEN if self._is_unreached else decode_path(num_rows)
        path = GROUPED if self._is_grouped and num_rows > 1 else path
        cost_ns = self._costs.decode_ns(path, num_rows)
        given = [[token] for token in tokens]
        hidden = self._forward(slots, given, path, cost_ns, segments or range(num_rows))
        return self._decoder.logits(hidden)

    def verify(self, slot: int, tokens: Sequence[int]) -> Tensor:
        """Compute a token and the guesses behind it; return logits for each, [K, vocab_size]."""
        path = decode_path(len(tokens))
        cost_ns = self._costs.decode_ns(path, len(tokens))
        return self._decoder.logits(self._forward([slot], [tokens], path, cost_ns, None))

    def _forward(
        self,
        slots: Sequence[int],
        tokens: Sequence[Sequence[int]],
        path: str,
        cost_ns: int,
        segments: Sequence[int] | None,
        *,
        is_prefill: bool = False,
    ) -> Tensor:
        self.path, self.num_rows = path, len(slots)
        self._experts.path, self._experts.segments = path, segments
        self._experts.layer_ns = self._slowness * cost_ns // self._decoder.config.num_layers
        rows = [self._row(slot, new) for slot, new in zip(slots, tokens, strict=True)]
        given = ModelInput.of(self._cache, rows, is_prefill=is_prefill)
        hidden: Tensor = self._decoder(given, self._cache)
        for slot, new in zip(slots, tokens, strict=True):
            self.lengths[slot] += len(new)
        return hidden

    def _row(self, slot: int, tokens: Sequence[int]) -> RowTokens:
        held = self.lengths[slot]
        if held + len(tokens) > self.slot_tokens:
            raise ProtocolError(f"slot {slot} holds {held} tokens, {len(tokens)} more do not fit")
        return RowTokens(tokens, held, [slot])
