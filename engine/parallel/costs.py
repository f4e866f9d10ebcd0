"""How long things take where time is virtual: the report's measurements, on its two machines.

Milliseconds of a decode step of a 122B model (10B active, 4 bits) on 2 x GB10, for N rows:

| | layers with recurrent state | attention layers | rest |
|---|---|---|---|
| per token | 88 at N=4, 44 at N=2: 22 a row | 24 at N=4: 6 a row | 122 in all at N=4: 2.5 a row |
| fused | 35 at N=2: 17.5 a row | not measured apart: 6 a row | 2.5 a row |
| grouped GEMM | 140 at N=4: 35 a row | 40 at N=4: 10 a row | 2.5 a row |

A prompt takes the 370 ms that the first token took. To stage rows of logits through the host took
15 to 19% more than on the device (13.12 against 11.43 s, 7.01 against 5.89 s): 5 ms a row.
A broadcast or an all-reduce takes 20 us, the order of a small NCCL message between two machines;
those of the layers are part of what was measured, so they weigh little here.
"""

from __future__ import annotations

from dataclasses import dataclass

FUSED, PER_TOKEN, GROUPED = "fused", "per-token", "grouped-gemm"
PATHS = (FUSED, PER_TOKEN, GROUPED)
US, MS = 1_000, 1_000_000


@dataclass(frozen=True, slots=True)
class Costs:
    """Nanoseconds of a row of a decode step by path, of a prompt, and of moving a row of logits."""

    per_token_row_ns: int = 30_500 * US
    fused_row_ns: int = 26_000 * US
    grouped_row_ns: int = 47_500 * US
    prefill_ns: int = 370 * MS
    host_staging_ns: int = 5 * MS
    device_staging_ns: int = 50 * US
    collective_ns: int = 20 * US

    def decode_ns(self, path: str, num_rows: int) -> int:
        """Return what a decode of `num_rows` rows takes on a path of the experts."""
        row_ns = {
            FUSED: self.fused_row_ns,
            PER_TOKEN: self.per_token_row_ns,
            GROUPED: self.grouped_row_ns,
        }
        return num_rows * row_ns[path]


def decode_path(num_rows: int) -> str:
    """Return the path that is fastest for so many rows: two or three at once, others one by one."""
    return FUSED if num_rows in {2, 3} else PER_TOKEN
