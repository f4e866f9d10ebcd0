"""Costs instead of kernels: a step takes as long as a linear model says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stepscope.engine.executors import Execution
from stepscope.engine.request import EOS_TOKEN

if TYPE_CHECKING:
    from stepscope.engine.batch import Batch, Row
    from stepscope.engine.clock import Clock
    from stepscope.ingest.recorder import Recorder


@dataclass(frozen=True, slots=True)
class CostModel:
    """Nanoseconds of a step: `base + prefill tokens + decode rows + KV tokens`, each at its price.

    The defaults are a roofline of Llama-3.1-8B in bf16 on one NVIDIA L4, the card of report 004,
    from the public model card and data sheet (300 GB/s, 121 dense bf16 TFLOP/s):

    - `base_ns`: a step reads every weight once, 8.03e9 x 2 B / 300 GB/s = 53.5 ms.
    - `prefill_token_ns`: 2 x 8.03e9 FLOP at half of the peak = 265 us.
    - `decode_row_ns`: a decode row's arithmetic hides behind the weights; what is left is the
      host's work, 2.2 ms at 256 rows of vLLM's `schedule` and `update_from_output` = 8.6 us.
    - `kv_token_ns`: K and V of 32 layers x 8 heads x 128 in bf16, 131,072 B / 300 GB/s = 437 ns.
    """

    base_ns: int = 53_500_000
    prefill_token_ns: int = 265_000
    decode_row_ns: int = 8_600
    kv_token_ns: int = 437

    def dur_ns(self, batch: Batch) -> int:
        """Return what `batch` costs."""
        num_kv_tokens = sum(row.num_computed + row.num_tokens for row in batch.rows)
        return (
            self.base_ns
            + self.prefill_token_ns * batch.num_prefill_tokens
            + self.decode_row_ns * batch.num_decode_reqs
            + self.kv_token_ns * num_kv_tokens
        )


@dataclass(slots=True)
class Simulated:
    """Advances the clock by what the cost model says; what it samples means nothing but its end."""

    cost: CostModel = field(default_factory=CostModel)

    def run(self, batch: Batch, step: int, clock: Clock, recorder: Recorder | None) -> Execution:
        """Pass the time of `batch`; nothing is computed and nothing recorded."""
        del step, recorder
        dur_ns = self.cost.dur_ns(batch)
        clock.advance(dur_ns)
        return Execution(dur_ns, f"simulated-{batch.kind}", sampled(batch))

    def snapshot(self) -> dict[str, Any]:
        """Return nothing: there is no device to look into."""
        return {}


def sampled(batch: Batch) -> dict[str, tuple[int, ...]]:
    """Return what a model without weights samples: 0, and the end where the workload says so."""
    return {row.request.id: _tokens(row) for row in batch.rows if row.samples}


def _tokens(row: Row) -> tuple[int, ...]:
    request = row.request
    if request.eos_after is None and not row.num_fed_back:
        return (0,)
    numbers = range(request.num_generated + 1, request.num_generated + row.num_fed_back + 2)
    return tuple(EOS_TOKEN if number == request.eos_after else 0 for number in numbers)
