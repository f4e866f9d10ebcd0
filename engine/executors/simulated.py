"""Costs instead of kernels: a step takes as long as a linear model says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from zlib import crc32

from stepscope.engine.executors import Execution
from stepscope.engine.executors.segments.split import Prepared, Split
from stepscope.engine.requests.request import EOS_TOKEN

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch, Row
    from stepscope.engine.clock import Clock
    from stepscope.ingest.recorder import Recorder


@dataclass(frozen=True, slots=True)
class CostModel:
    """Nanoseconds of a step: `base + prefill tokens + decode rows + KV tokens`, each at its price.

    A batch that runs in segments costs `body_ns` for each that runs the layers' projections again,
    and `sync_ns` whenever the host waits for the device in between; a model whose batches run in
    one piece has neither. Engines that compile or plan kernels as they are needed pay `new_size_ns`
    for the first step with a number of tokens, and `first_ns` for the first of all; each token of a
    decode, drafts included, costs `decode_token_ns`. Between two steps the host takes `gap_ns`, and
    `gap_row_ns` for each row of the first.

    The defaults are a roofline of Llama-3.1-8B in bf16 on one NVIDIA L4, the card of report 004,
    from the public model card and data sheet (300 GB/s, 121 dense bf16 TFLOP/s):

    - `base_ns`: a step reads every weight once, 8.03e9 x 2 B / 300 GB/s = 53.5 ms.
    - `prefill_token_ns`: 2 x 8.03e9 FLOP at half of the peak = 265 µs.
    - `decode_row_ns`: a decode row's arithmetic hides behind the weights; what is left is the
      host's work, 2.2 ms at 256 rows of vLLM's `schedule` and `update_from_output` = 8.6 µs.
    - `kv_token_ns`: K and V of 32 layers x 8 heads x 128 in bf16, 131,072 B / 300 GB/s = 437 ns.
    """

    base_ns: int = 53_500_000
    prefill_token_ns: int = 265_000
    decode_row_ns: int = 8_600
    kv_token_ns: int = 437
    body_ns: int = 0
    sync_ns: int = 0
    decode_token_ns: int = 0
    new_size_ns: int = 0
    first_ns: int = 0
    gap_ns: int = 0
    gap_row_ns: int = 0

    def dur_ns(
        self, batch: Batch, *, overlaps_host: bool = False, num_bodies: int = 1, num_syncs: int = 0
    ) -> int:
        """Return what `batch` costs; with `overlaps_host` the host works while the device does.

        What is paid once, for a size or for the first step, is not in it.
        """
        num_kv_tokens = sum([row.num_computed + row.num_tokens for row in batch.rows])
        device_ns = (
            self.base_ns
            + self.body_ns * (num_bodies - 1)
            + self.sync_ns * num_syncs
            + self.prefill_token_ns * batch.num_prefill_tokens
            + self.decode_token_ns * batch.num_decode_tokens
            + self.kv_token_ns * num_kv_tokens
        )
        host_ns = self.decode_row_ns * batch.num_decode_reqs
        return max(device_ns, host_ns) if overlaps_host else device_ns + host_ns


@dataclass(slots=True)
class Simulated:
    """Advances the clock by what the cost model says; what it samples means nothing but its end.

    With `split`, mixed batches are prepared as they would be for kernels, and that is recorded. A
    draft token is accepted with the probability `acceptance`, by lot: `seed`, request and position
    say what is drawn.
    """

    cost: CostModel = field(default_factory=CostModel)
    split: Split | None = None
    overlaps_host: bool = False
    acceptance: float = 0.0
    seed: int = 0
    _sizes: set[int] = field(default_factory=set, init=False)

    def run(self, batch: Batch, step: int, clock: Clock, recorder: Recorder | None) -> Execution:
        """Pass the time of `batch`; nothing is computed."""
        prepared = self._prepare(batch, step, clock, recorder)
        tokens = {row.request.id: self._tokens(row) for row in prepared.sampling}
        dur_ns = self.cost.dur_ns(
            batch,
            overlaps_host=self.overlaps_host,
            num_bodies=prepared.num_bodies,
            num_syncs=prepared.num_syncs,
        ) + self._once(batch)  # fmt: skip
        clock.advance(dur_ns)
        num_draft = sum([row.num_draft for row in batch.rows])
        if num_draft and recorder:
            num_accepted = sum(
                len(tokens[row.request.id]) - 1 for row in batch.rows if row.num_draft
            )
            now_ns = clock.now_ns()
            recorder.counters(step, now_ns, "drafts", "accepted", "tokens", float(num_accepted))
        path = f"simulated-{prepared.path}{'+mtp' if num_draft else ''}"
        logits_rows = len(prepared.logits_tokens) if prepared.segments else None
        gap_ns = self.cost.gap_ns + self.cost.gap_row_ns * len(batch.rows)
        return Execution(dur_ns, path, tokens, logits_rows, gap_ns=gap_ns)

    def snapshot(self) -> dict[str, Any]:
        """Return nothing: there is no device to look into."""
        return {}

    def _once(self, batch: Batch) -> int:
        """What is paid for the first step of all, and for the first with so many tokens."""
        size = batch.num_prefill_tokens + batch.num_decode_tokens
        if size in self._sizes:
            return 0
        first_ns = 0 if self._sizes else self.cost.first_ns
        self._sizes.add(size)
        return first_ns + self.cost.new_size_ns

    def _prepare(
        self, batch: Batch, step: int, clock: Clock, recorder: Recorder | None
    ) -> Prepared:
        """Return how the batch runs: in segments, or without `split` as it is."""
        if batch.dummy or not self.split or not batch.rows:
            return Prepared(
                f"dummy-{batch.dummy}" if batch.dummy else batch.kind, (), (), (),
                tuple([row for row in batch.rows if row.samples]),
            )  # fmt: skip
        return self.split.prepare(batch, step, clock.now_ns(), recorder)

    def _tokens(self, row: Row) -> tuple[int, ...]:
        num_accepted = self._num_accepted(row) if row.num_draft else 0
        return _tokens(row, 1 + row.num_fed_back + num_accepted)

    def _num_accepted(self, row: Row) -> int:
        for number in range(row.num_draft):
            drawn = crc32(f"{self.seed} {row.request.id} {row.num_computed + number}".encode())
            if drawn >= self.acceptance * (1 << 32):
                return number
        return row.num_draft


def sampled(batch: Batch) -> dict[str, tuple[int, ...]]:
    """Return what a model without weights samples: 0, and the end where the workload says so."""
    return {row.request.id: _tokens(row, 1 + row.num_fed_back) for row in batch.rows if row.samples}


def _tokens(row: Row, num_tokens: int) -> tuple[int, ...]:
    request = row.request
    if request.eos_after is None:
        return (0,) * num_tokens
    first = request.num_generated + request.num_placeholders + 1
    numbers = range(first, first + num_tokens)
    return tuple(EOS_TOKEN if number == request.eos_after else 0 for number in numbers)
