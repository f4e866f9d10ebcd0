"""How long things take where time is virtual: the report's measurements, on its two machines.

Milliseconds of a decode step of a 122B model (10B active, 4 bits) on 2 x GB10, for N rows:

| | layers with recurrent state | attention layers | rest |
|---|---|---|---|
| per token | 88 at N=4, 44 at N=2: 22 a row | 24 at N=4: 6 a row | 122 in all at N=4: 2.5 a row |
| fused | 35 at N=2 | not measured apart: 6 a row | 2.5 a row |
| grouped GEMM | 140 at N=4 | 40 at N=4 | 2.5 a row |

They are made of four things, `LayerCosts`, which are fitted to these figures:

- An expert is read from memory: 5.3 MB (122e9 parameters in 48 layers of 256 experts and what else
  there is, 4.5 bits each) at 273 GB/s on two machines that read half of them each, 9.7 µs: 10 µs.
  Row after row each reads its 8 of the 256. Together they read `distinct_experts`, once each.
- A row goes through the mixer. A launch and an all-reduce come with each call of the experts: one
  for each row, or one where rows are fused. Fused attention was not measured apart, and wins
  nothing here.
- The grouped GEMM sorts, permutes and builds pointer tables, once for a layer and whatever N is:
  1.46 ms in each of 36 recurrent layers, 1.35 ms in each of 12 attention layers.

So the grouped GEMM loses at small N by a fixed time, and wins where rows share experts, which takes
more than 256 / 8 of them: from 42 rows on.

A prompt takes the 370 ms that the first token took. To stage rows of logits through the host took
15 to 19% more of a whole run than on the device (13.12 against 11.43 s, 7.01 against 5.89 s): 7 ms
a row of a step.
A broadcast or an all-reduce takes 20 µs, the order of a small NCCL message between two machines;
those of the layers are part of what was measured, so they weigh little here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepscope.ingest.times import MS, US

FUSED, PER_TOKEN, GROUPED = "fused", "per-token", "grouped-gemm"
PATHS = (FUSED, PER_TOKEN, GROUPED)
RECURRENT, ATTENTION = "recurrent", "attention"
KINDS = (RECURRENT, ATTENTION)
NUM_EXPERTS, EXPERTS_PER_TOKEN = 256, 8


def distinct_experts(num_rows: int) -> float:
    """Return how many experts so many rows choose in a layer, on average, if all are as likely."""
    left_out = (1 - EXPERTS_PER_TOKEN / NUM_EXPERTS) ** num_rows
    return NUM_EXPERTS * (1 - left_out)


@dataclass(frozen=True, slots=True)
class LayerCosts:
    """Nanoseconds of all layers of a kind together.

    `row_ns` is a row's mixer, `call_ns` a call of the experts, `sort_ns` what the grouped GEMM does
    first, and `expert_ns` an expert that is read.
    """

    row_ns: int
    call_ns: int
    sort_ns: int
    expert_ns: int

    def decode_ns(self, path: str, num_rows: int) -> int:
        """Return what a decode of `num_rows` rows takes on a path of the experts."""
        num_calls = 1 if path == FUSED else num_rows
        num_read = distinct_experts(num_rows)
        if path == PER_TOKEN:
            num_read = num_rows * EXPERTS_PER_TOKEN
        sort_ns = self.sort_ns if path == GROUPED else 0
        read_ns = round(num_read * self.expert_ns)
        return num_rows * self.row_ns + num_calls * self.call_ns + sort_ns + read_ns


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds of the layers of a decode step, of a prompt, and of moving a row of logits."""

    recurrent: LayerCosts = LayerCosts(10_210 * US, 8_910 * US, 52_530 * US, 360 * US)
    attention: LayerCosts = LayerCosts(5_040 * US, 0, 16_180 * US, 120 * US)
    rest_row_ns: int = 2_500 * US
    prefill_ns: int = 370 * MS
    host_staging_ns: int = 7 * MS
    device_staging_ns: int = 50 * US
    collective_ns: int = 20 * US

    def layers_ns(self, paths: Sequence[str], num_rows: int) -> list[int]:
        """Return what a decode takes in the layers of each of `KINDS`, with its path."""
        kinds = (self.recurrent, self.attention)
        return [kind.decode_ns(path, num_rows) for kind, path in zip(kinds, paths, strict=True)]


def decode_path(num_rows: int) -> str:
    """Return the path of a decode: two or three rows at once, others one by one."""
    return FUSED if num_rows in {2, 3} else PER_TOKEN
