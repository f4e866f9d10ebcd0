"""What a core did at a moment: what ran on it, what held it, and which tasks waited for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.ingest.derive.states import with_held
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

Row = Mapping[str, Any]
LEFT_OUT = ("deferred", "put-back", "passed-over")


@dataclass(frozen=True, slots=True)
class CoreMoment:
    """A core of a rank at `ts_ns`; rows are those of `core_spans`, with given_ns and held_ns.

    `running` are the blocks that ran (two where it was taken twice), `given` those that had been
    dispatched to it and had not begun, in the order in which they begin, `later` those that were
    ready then, and were dispatched to it afterwards. `decided` are the last decisions up to then on
    tasks that were left out because of what was on this core. `free_since_ns` is when the last
    block before had ended; None while one runs, or where none had.
    """

    ts_ns: int
    running: tuple[Row, ...]
    given: tuple[Row, ...]
    later: tuple[Row, ...]
    decided: tuple[Row, ...]
    free_since_ns: int | None

    @property
    def held_since_ns(self) -> int | None:
        """Since when it was held by a block that had not begun; None where it was not."""
        if self.running or not self.given:
            return None
        since: int = self.given[0]["held_ns"]
        return since if since <= self.ts_ns else None


def core_at(trace: Trace, rank: int, core: int, ts_ns: int) -> CoreMoment:
    """Look up a core at a time; at a time at which one block ends and one begins, the next runs."""
    own = trace.core_spans.filter(pl.col("rank") == rank, pl.col("core") == core)
    far = pl.col("ts_ns", "dispatch_ns", "ready_ns", "end_ns").clip(-FAR_NS, FAR_NS)
    held = with_held(own.with_columns(far))
    # Asked for four times below, and sorted once: `collect_all` would do it each time.
    blocks = held.with_columns(until_ns=pl.col("end_ns").fill_null(FAR_NS)).collect()
    begun, given = pl.col("ts_ns") <= ts_ns, pl.col("given_ns") <= ts_ns
    is_over = pl.col("until_ns") <= ts_ns
    ready = (pl.col("ready_ns") <= ts_ns).fill_null(value=False)
    running = tuple(blocks.filter(begun, ~is_over).to_dicts())
    free_ns = blocks.filter(begun, is_over).select(pl.col("until_ns").max()).item()
    return CoreMoment(
        ts_ns,
        running,
        tuple(blocks.filter(given, ~begun).to_dicts()),
        tuple(blocks.filter(ready, ~given).to_dicts()),
        _decided(trace, rank, core, ts_ns),
        None if running else free_ns,
    )


def _decided(trace: Trace, rank: int, core: int, ts_ns: int) -> tuple[Row, ...]:
    about = (pl.col("subject_kind") == "task") & (pl.col("rank") == rank)
    last = (
        trace.decisions.filter(about, pl.col("ts_ns") <= ts_ns)
        .sort("ts_ns", "seq", nulls_last=False, maintain_order=True)
        .group_by("subject", maintain_order=True)
        .last()
    )
    left_out = pl.col("verdict").is_in(LEFT_OUT)
    return tuple(last.filter(left_out, pl.col("core") == core).collect().to_dicts())
