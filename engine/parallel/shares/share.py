"""What a rank holds of the model: all of it but the experts, of which it owns some.

Attention with its KV, and the recurrent states, are the same on every rank, so each rank knows by
itself how far each slot has got. Ranks that disagree about that compute their experts' parts from
different hidden states, and the sum of them is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stepscope.engine.clock import Clock
from stepscope.engine.model.cache.row_tokens import RowTokens
from stepscope.engine.model.numpy_decoder import Array
from stepscope.engine.parallel.costs import GROUPED, KINDS, PER_TOKEN, Costs, decode_path
from stepscope.engine.parallel.expert_choices import expert_choice
from stepscope.engine.parallel.links.link import Link
from stepscope.engine.parallel.protocol import ProtocolError
from stepscope.engine.parallel.rank_config import ParallelConfig
from stepscope.engine.parallel.shares.access_log import COMPUTE, AccessLog
from stepscope.engine.parallel.shares.experts import Pass, ShardedExperts
from stepscope.engine.parallel.shares.models import model_kind
from stepscope.engine.parallel.shares.rank_model import model_config

if TYPE_CHECKING:
    from stepscope.ingest.recorder import Recorder

STATES = "recurrent-state"


class Share:
    """One rank's part in every forward pass; `lengths` says how many tokens each slot holds.

    `path` is how the experts of the last pass were run, `num_rows` for how many rows, and
    `layers_ns` how long the layers of each kind took in this step. `spend` lets virtual time pass,
    and does nothing where time is real.
    """

    def __init__(
        self,
        config: ParallelConfig,
        link: Link,
        log: AccessLog,
        spend: Callable[[int], object],
        costs: Costs,
        clock: Clock,
    ) -> None:
        self.num_slots = config.num_slots
        self.slot_tokens = config.slot_tokens
        self.vocab_size = model_config(config.seed).vocab_size
        self.lengths = [0] * config.num_slots
        self.path = ""
        self.num_rows = 0
        self.layers_ns = [0] * len(KINDS)
        self._link = link
        self._clock = clock
        self._recorder: Recorder | None = None
        self._log = log
        self._costs = costs
        self._spend = spend
        self._choice = expert_choice(config.experts)
        self._slowness = 1 + ("slow-worker" in config.faults and link.rank > 0)
        self._is_unreached = "path-never-reached" in config.faults
        self._remembers = "state-not-cleared" in config.faults
        owned = range(link.rank, model_config(config.seed).num_experts, link.world_size)
        self._model = model_kind(config.model).made(
            config.seed, config.num_slots, config.slot_tokens, owned
        )
        self._experts = ShardedExperts(
            self._model.run_path, link, log, spend,
            shares_scratch="scratch-shared" in config.faults,
        )  # fmt: skip

    def begin(self, step: int, recorder: Recorder | None) -> None:
        """Write what happens from now on as of `step`, the slots' tokens to `recorder`."""
        self._link.step = self._log.step = step
        self.layers_ns = [0] * len(KINDS)
        is_first = self._recorder is None and recorder is not None
        self._recorder = recorder
        for slot in range(self.num_slots) if is_first else ():
            self._set_length(slot, self.lengths[slot])

    def free(self, slot: int) -> None:
        """Forget what a slot holds."""
        self._set_length(slot, 0)
        if not self._remembers:
            self._model.forget(slot)
            self._log.forget(STATES, slot)

    def trim(self, slot: int, num_tokens: int) -> None:
        """Forget the last `num_tokens` tokens of a slot, which are of its last pass."""
        self._set_length(slot, self.lengths[slot] - num_tokens)
        self._model.take_back(slot, num_tokens)

    def move(self, source: int, target: int) -> None:
        """Let slot `target` hold what `source` holds, and `source` nothing."""
        self._model.move(source, target)
        self._set_length(target, self.lengths[source])
        self._set_length(source, 0)

    def prefill(self, slot: int, start: int, tokens: Sequence[int]) -> Array:
        """Compute a chunk of a prompt from position `start`; return its last token's logits."""
        if start != self.lengths[slot]:
            self._set_length(slot, start)
        layers_ns = [self._costs.prefill_ns // len(KINDS)] * len(KINDS)
        how = Pass([GROUPED] * len(KINDS), layers_ns, is_prefill=True)
        last: Array = self._model.logits(self._forward([slot], [tokens], how, 0)[-1:])[0]
        return last

    def decode(
        self, slots: Sequence[int], tokens: Sequence[int], segments: Sequence[int] | None = None
    ) -> Array:
        """Decode a token of each slot; return a row of logits for each, [rows, vocab_size].

        `segments` are their rows of the batch, where they are not its first ones.
        """
        num_rows = len(slots)
        how = self._pass(num_rows, segments or range(num_rows), may_group=num_rows > 1)
        rest_ns = num_rows * self._costs.rest_row_ns
        return self._model.logits(self._forward(slots, [[token] for token in tokens], how, rest_ns))

    def verify(self, slot: int, tokens: Sequence[int]) -> Array:
        """Compute a token and the guesses behind it; return logits for each, [K, vocab_size]."""
        how = self._pass(len(tokens), None, may_group=False)
        rest_ns = len(tokens) * self._costs.rest_row_ns
        return self._model.logits(self._forward([slot], [tokens], how, rest_ns))

    def _pass(self, num_rows: int, segments: Sequence[int] | None, *, may_group: bool) -> Pass:
        usual = PER_TOKEN if self._is_unreached and may_group else decode_path(num_rows)
        paths = [self._choice.path(kind, usual) if may_group else usual for kind in KINDS]
        return Pass(paths, self._costs.layers_ns(paths, num_rows), segments)

    def _forward(
        self, slots: Sequence[int], tokens: Sequence[Sequence[int]], how: Pass, rest_ns: int
    ) -> Array:
        self.path, self.num_rows = " + ".join(dict.fromkeys(how.paths)), len(slots)
        layers_ns = [self._slowness * ns for ns in how.layers_ns]
        self._experts.now = Pass(how.paths, layers_ns, how.segments, how.is_prefill)
        self.layers_ns = [sum(each) for each in zip(self.layers_ns, layers_ns, strict=True)]
        rows = [self._row(slot, new) for slot, new in zip(slots, tokens, strict=True)]
        self._note_states(slots)
        hidden = self._model.forward(rows, self._experts.run, is_prefill=how.is_prefill)
        self._spend(self._slowness * rest_ns)
        for slot, new in zip(slots, tokens, strict=True):
            self._set_length(slot, self.lengths[slot] + len(new))
        return hidden

    def _set_length(self, slot: int, num_tokens: int) -> None:
        self.lengths[slot] = num_tokens
        if self._recorder:
            self._recorder.slot_tokens(self._link.step, self._clock.now_ns(), slot, num_tokens)

    def _row(self, slot: int, tokens: Sequence[int]) -> RowTokens:
        held = self.lengths[slot]
        if held + len(tokens) > self.slot_tokens:
            raise ProtocolError(f"slot {slot} holds {held} tokens, {len(tokens)} more do not fit")
        return RowTokens(tokens, held, [slot])

    def _note_states(self, slots: Sequence[int]) -> None:
        """Note that rows read and write their own slots' recurrent states, one after the other."""
        for slot in slots:
            self._log.update(COMPUTE, STATES, slot)
