"""What each step's batch was made of, over time: the overview of both fronts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.timeline.lanes import Ints, placeable
from stepscope.ingest.trace import Trace

Floats = npt.NDArray[np.float64]
COLUMNS = {
    "num_prefill_reqs": "prefill_reqs",
    "num_decode_reqs": "decode_reqs",
    "num_prefill_tokens": "prefill_tokens",
    "num_decode_tokens": "decode_tokens",
    "token_budget": "budget",
    "num_waiting": "waiting",
    "num_running": "running",
    "kv_blocks_free": "kv_free",
    "kv_blocks_total": "kv_total",
}


@dataclass(frozen=True, slots=True)
class Composition:
    """One value per step of a rank, in order of time; NaN where the trace does not say."""

    step: Ints
    ts_ns: Ints
    dur_ns: Floats
    kind: tuple[str, ...]
    prefill_reqs: Floats
    decode_reqs: Floats
    prefill_tokens: Floats
    decode_tokens: Floats
    budget: Floats
    waiting: Floats
    running: Floats
    kv_free: Floats
    kv_total: Floats

    @classmethod
    def of(cls, trace: Trace, rank: int | None = None) -> Composition:
        """Read `steps` of a rank, of the lowest one that has any by default."""
        steps = placeable(trace, "steps")
        chosen = pl.col("rank") == (pl.col("rank").min() if rank is None else rank)
        rows = steps.filter(chosen).sort("ts_ns", maintain_order=True).collect()
        numbers = {
            field: rows[column].cast(pl.Float64).fill_null(float("nan")).to_numpy()
            for column, field in COLUMNS.items()
        }
        return cls(
            step=rows["step"].to_numpy(),
            ts_ns=rows["ts_ns"].to_numpy(),
            dur_ns=rows["dur_ns"].cast(pl.Float64).fill_null(float("nan")).to_numpy(),
            kind=tuple(rows["kind"].to_list()),
            **numbers,
        )

    def __len__(self) -> int:
        return len(self.step)
