"""What each step's batch was made of, over time: the overview of both fronts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.timeline.lanes.lane import Ints, clipped, placeable
from stepscope.app.timeline.lanes.recomputed import with_recomputed
from stepscope.ingest.derive.states import step_times
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
    "recompute_tokens": "recompute_tokens",
    "dur_ns": "dur_ns",
    "lasts_ns": "lasts_ns",
}


@dataclass(frozen=True, slots=True)
class Composition:
    """One value per step of a rank, in order of time; NaN where the trace does not say.

    Tokens are those of the step, each once: what is computed again is not in prefill and decode.
    `dur_ns` is as recorded; `lasts_ns` reaches to the next step where that is not. `rank` is None
    where the trace has no steps, and `num_ranks` says how many have any.
    """

    rank: int | None
    num_ranks: int
    step: Ints
    formed_ns: Ints
    ts_ns: Ints
    dur_ns: Floats
    lasts_ns: Floats
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
    recompute_tokens: Floats

    @classmethod
    def of(cls, trace: Trace, rank: int | None = None) -> Composition:
        """Read `steps` of a rank, of the lowest one that has any by default."""
        times = step_times(trace)
        steps = _known_steps(trace, times)
        ranks: list[int] = steps.select("rank").unique().collect()["rank"].to_list()
        own = min(ranks, default=None) if rank is None else rank
        chosen = pl.col("rank") == pl.lit(own, pl.Int32)
        formed = times.select("rank", "step", "formed_ns", "to_ns")
        rows = (
            with_recomputed(steps.filter(chosen).drop("formed_ns"), trace)
            .join(formed, on=["rank", "step"], how="left", maintain_order="left")
            .with_columns(pl.coalesce("formed_ns", "ts_ns"))
            .with_columns(
                lasts_ns=pl.coalesce("dur_ns", pl.col("to_ns") - clipped(pl.col("ts_ns")))
            )
            .sort("formed_ns", maintain_order=True)
            .collect()
        )
        numbers = {
            field: rows[column].cast(pl.Float64).fill_null(float("nan")).to_numpy()
            for column, field in COLUMNS.items()
        }
        return cls(
            rank=own,
            num_ranks=len(ranks),
            step=rows["step"].to_numpy(),
            formed_ns=rows["formed_ns"].to_numpy(),
            ts_ns=rows["ts_ns"].to_numpy(),
            kind=tuple(rows["kind"].to_list()),
            **numbers,
        )

    def index_at(self, ts_ns: int) -> int | None:
        """Index of the last step whose batch was formed by a time; None before the first.

        It is the step at which a debug session stands at that time.
        """
        index = int(np.searchsorted(self.formed_ns, ts_ns, "right")) - 1
        return index if index >= 0 else None

    def __len__(self) -> int:
        return len(self.step)


def _known_steps(trace: Trace, times: pl.LazyFrame) -> pl.LazyFrame:
    """The rows of `steps`, and rank, step and time of those that are known by their batch alone."""
    steps = placeable(trace, "steps")
    unlisted = times.join(steps, on=["rank", "step"], how="anti")
    return pl.concat([steps, unlisted.select("rank", "step", ts_ns="from_ns")], how="diagonal")
