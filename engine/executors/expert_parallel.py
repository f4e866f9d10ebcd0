"""`expert-parallel`: a head that serves, workers that hold the other experts, commands in between.

The head runs the engine. For every batch it sends a command for each prompt, and one for all
decodes or one for each, and head and workers then go through the same layers, meeting in a
collective after each layer's experts.

A run that cannot go on, because the ranks wait for each other or one of them has left, stops there:
the step is recorded as `stalled`, and what the ranks were at is why the requests are aborted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from stepscope.engine.batch import DECODE, PREFILL
from stepscope.engine.executors import Digest, Execution
from stepscope.engine.model.drafts import num_accepted
from stepscope.engine.model.sampler import digest, greedy
from stepscope.engine.parallel.costs import KINDS, Costs
from stepscope.engine.parallel.links.transport import Disconnected
from stepscope.engine.parallel.protocol import ProtocolError
from stepscope.engine.parallel.rank_config import ParallelConfig
from stepscope.engine.parallel.ranks.head import Head
from stepscope.engine.parallel.ranks.head_slots import Placement
from stepscope.engine.parallel.shares.decodes import Staging, decode_kind
from stepscope.engine.parallel.shares.logits import LogitsRows
from stepscope.engine.requests.content import prompt_tokens

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch, Row
    from stepscope.engine.clock import Clock
    from stepscope.engine.model.numpy_decoder import Array
    from stepscope.engine.model.stream import Stream
    from stepscope.engine.requests.finishing import Ended
    from stepscope.ingest.recorder import Recorder


PROMPT_FAILED = "error: its prompt failed"


class _Sampled(NamedTuple):
    token: int
    digest: Digest


class ExpertParallel:
    """Runs batches through `head`, until it is `stopped`, which then says why.

    `outputs` holds the tokens of every request by its id, `first_token_ns` when the first of them
    was there, and `decode_steps` the rows and nanoseconds of every step that decoded alone. `spend`
    lets virtual time pass, and does nothing where time is real. `solo` is what the model says to
    each request alone.
    """

    def __init__(
        self,
        head: Head,
        logits: LogitsRows,
        config: ParallelConfig,
        spend: Callable[[int], object],
        costs: Costs,
        solo: Mapping[str, Stream],
    ) -> None:
        self.outputs: dict[str, list[int]] = {}
        self.first_token_ns: dict[str, int] = {}
        self.decode_steps: list[tuple[int, int]] = []
        self.stopped: str | None = None
        self._head = head
        self._logits = logits
        self._config = config
        self._faults = config.faults
        self._spend = spend
        self._staging = decode_kind(config.decode).staging(logits, costs, config.faults)
        self._solo = solo
        self._prompts: dict[str, list[int]] = {}
        self._placement = Placement(head, config)
        self._paths: list[str] = []
        self._failed: dict[str, str] = {}

    def run(self, batch: Batch, step: int, clock: Clock, recorder: Recorder | None) -> Execution:
        """Compute the rows of `batch` on all ranks, prompts first."""
        began_ns = clock.now_ns()
        self._head.share.begin(step, recorder)
        self._paths.clear()
        self._failed = {}
        try:
            sampled = self._run(batch, step, clock, recorder)
        except (Disconnected, ProtocolError) as error:
            dur_ns = clock.now_ns() - began_ns
            self.stopped = str(error)
            nothing: dict[str, tuple[int, ...]] = {row.request.id: () for row in batch.rows}
            return Execution(dur_ns, f"stalled: {batch.kind}", nothing, 0, stop=self.stopped)
        tokens = {each: tuple(one.token for one in ones) for each, ones in sampled.items()}
        digests = {each: tuple(one.digest for one in ones) for each, ones in sampled.items()}
        for request_id, said in tokens.items():
            self.outputs[request_id] += said
            self.first_token_ns.setdefault(request_id, clock.now_ns())
        if batch.kind == DECODE:
            self.decode_steps.append((len(batch.rows), clock.now_ns() - began_ns))
            self._note_layers(step, clock, recorder)
        path = f"{batch.kind}: {' + '.join(dict.fromkeys(self._paths))}"
        num_rows = sum(1 + row.num_draft for row in batch.rows if row.samples)
        lasted_ns = clock.now_ns() - began_ns
        return Execution(lasted_ns, path, tokens, num_rows, digests, self._failed)

    def _note_layers(self, step: int, clock: Clock, recorder: Recorder | None) -> None:
        if recorder:
            for kind, ns in zip(KINDS, self._head.share.layers_ns, strict=True):
                recorder.counters(step, clock.now_ns(), "layers", f"{kind} layers", "ns", float(ns))

    def snapshot(self) -> dict[str, Any]:
        """Return how many tokens each slot holds on the head."""
        return {"slot_tokens": dict(enumerate(self._head.share.lengths))}

    @property
    def num_collectives(self) -> int:
        """Collectives that the head issued."""
        return self._head.wire.link.num_issued

    def equal_to_solo(self, ended: Sequence[Ended]) -> int:
        """Return how many requests got to their end, and what the model says to them alone."""
        return sum(
            each.event == "finish"
            and tuple(self.outputs[each.request.id]) == self._solo[each.request.id].tokens
            for each in ended
        )

    def _run(
        self, batch: Batch, step: int, clock: Clock, recorder: Recorder | None
    ) -> dict[str, tuple[_Sampled, ...]]:
        self._is_for()
        self._placement.update(batch, step, clock, recorder)
        sampled: dict[str, tuple[_Sampled, ...]] = {}
        decodes: list[tuple[int, Row]] = []
        for number, row in enumerate(batch.rows):
            if row.num_draft:
                sampled[row.request.id] = self._verify(number, row)
            elif row.phase is PREFILL:
                last = self._prefill(number, row)
                if self._fails(row):
                    self._failed[row.request.id] = PROMPT_FAILED
                elif row.samples:
                    sampled[row.request.id] = (last,)
            else:
                decodes.append((number, row))
        if decodes:
            decoded = zip(decodes, self._decode(decodes), strict=True)
            sampled |= {row.request.id: (one,) for (_, row), one in decoded}
        return sampled

    def _is_for(self, *numbers: int) -> None:
        """Let the collectives that follow be for these rows of the batch."""
        self._head.wire.link.rows = ",".join(map(str, numbers)) or None

    def _fails(self, row: Row) -> bool:
        every = self._config.failing_prompts
        return every > 0 and row.request.arrival_order % every == 0

    def _prefill(self, number: int, row: Row) -> _Sampled:
        request = row.request
        known = self._known(row)
        chunk = known[row.num_computed : row.num_kv_tokens]
        slot = self._placement[request.id]
        self._is_for(number)
        logits = self._head.prefill(slot, row.num_computed, len(known), chunk)
        self._computed([0], [logits], [number])
        return self._sample(row, self._logits.read(0, number))

    def _decode(self, rows: Sequence[tuple[int, Row]]) -> list[_Sampled]:
        if len(rows) > 1 and self._staging:
            return self._decode_one_by_one(rows, self._staging)
        slots = [self._placement[row.request.id] for _, row in rows]
        tokens = [self._known(row)[-1] for _, row in rows]
        numbers = [number for number, _ in rows]
        self._is_for(*numbers)
        if len(rows) == 1:
            logits: Sequence[Array] = [self._head.decode(slots[0], tokens[0])]
        else:
            logits = list(self._head.decode_batch(slots, tokens))
        self._computed(range(len(rows)), logits, numbers)
        return [
            self._sample(row, self._logits.read(i, number)) for i, (number, row) in enumerate(rows)
        ]

    def _decode_one_by_one(
        self, rows: Sequence[tuple[int, Row]], staging: Staging
    ) -> list[_Sampled]:
        """Decode each row into row 0, and move its logits to where the next one's do not go."""
        in_order = [(row, *rows[row]) for row in staging.in_order(len(rows))]
        is_announced = "preambles-up-front" in self._faults
        if is_announced:
            for _, number, row in in_order:
                self._is_for(number)
                self._head.announce(self._placement[row.request.id], self._known(row)[-1])
        for target, number, row in in_order:
            slot, token = self._placement[row.request.id], self._known(row)[-1]
            self._is_for(number)
            values = self._head.decode(slot, token, is_announced=is_announced)
            self._logits.write(0, values, number)
            self._spend(staging.stage_ns(target))
            staging.stage(target, number)
        self._paths.append(self._head.share.path)
        self._logits.wait()
        return [
            self._sample(row, staging.read(target, number))
            for target, (number, row) in enumerate(rows)
        ]

    def _verify(self, number: int, row: Row) -> tuple[_Sampled, ...]:
        """Check what prompt lookup guesses; where it has fewer guesses than the row, pad.

        What was refused is forgotten again, and so is the padding, also where nothing was refused.
        """
        known, slot = self._known(row), self._placement[row.request.id]
        drafts = looked_up(known, row.num_draft)
        window = [known[-1], *drafts, *[known[-1]] * (row.num_draft - len(drafts))]
        self._is_for(number)
        logits = self._head.verify(slot, window)
        self._computed(range(len(window)), logits, [number] * len(window))
        rows = [self._logits.read(i, number) for i in range(len(drafts) + 1)]
        sampled = [self._sample(row, values, i) for i, values in enumerate(rows)]
        num_right = num_accepted(drafts, [one.token for one in sampled])
        num_accepted_rows = num_right + 1
        if drafts and num_right == len(drafts) and "full-accept-not-trimmed" in self._faults:
            num_accepted_rows = len(window)
        self._head.keep(slot, num_accepted_rows, len(window))
        return tuple(sampled[: num_right + 1])

    def _computed(
        self, rows: Sequence[int], logits: Sequence[Array] | Array, numbers: Sequence[int]
    ) -> None:
        """Let the host wait for rows of logits that the device wrote at once."""
        for row, values, number in zip(rows, logits, numbers, strict=True):
            self._logits.write(row, values, number)
        self._logits.wait()
        self._paths.append(self._head.share.path)

    def _sample(self, row: Row, logits: Array, num_ahead: int = 0) -> _Sampled:
        request = row.request
        number = request.num_generated + num_ahead + 1
        alone = self._solo[request.id].digests if request.id in self._solo else ()
        solo = alone[number - 1] if number <= len(alone) else None
        token = greedy(logits, number, request.eos_after, ends_at_eos=request.ends_at_eos)
        return _Sampled(token, Digest(digest(logits), solo))

    def _known(self, row: Row) -> list[int]:
        request = row.request
        if request.id not in self._prompts:
            self._prompts[request.id] = prompt_tokens(request, self._head.share.vocab_size)
            self.outputs[request.id] = []
        return self._prompts[request.id] + self.outputs[request.id]


def looked_up(tokens: Sequence[int], num_tokens: int) -> list[int]:
    """Return up to `num_tokens` guesses: what followed the last token where it stood before."""
    for place in range(len(tokens) - 2, -1, -1):
        if tokens[place] == tokens[-1]:
            return list(tokens[place + 1 : place + 1 + num_tokens])
    return []
