"""The slots: who sat in each of them over time, and what it did there.

A slot without a request shows nothing. Where it still held tokens of an earlier request while the
next one used it, a second lane below it says so.
"""

from __future__ import annotations

import polars as pl

from stepscope.app import palette
from stepscope.app.timeline.lanes.lane import LaneName, LaneSpans, several_ranks, span_rows
from stepscope.ingest.derive import slot_spans as derived
from stepscope.ingest.derive.slot_spans import old_tokens, slot_spans
from stepscope.ingest.trace import Trace

SLOTS = "slots"
KEY = ["rank", "slot", "is_old"]
STATE_OF = {
    derived.PREFILL: palette.PREFILL, derived.DECODE: palette.DECODE,
    derived.RECOMPUTE: palette.RECOMPUTE, derived.IDLE: palette.IDLE,
}  # fmt: skip


def slot_lanes(trace: Trace, last_ns: int) -> LaneSpans:
    """Lay out `allocations` of slots and `batch_rows`; whoever is still there reaches `last_ns`."""
    if not _has_slots(trace):
        return LaneSpans((), [])
    state = pl.col("state").replace_strict(STATE_OF, default=palette.UNKNOWN, return_dtype=pl.UInt8)
    spans = slot_spans(trace).with_columns(state=state, is_old=pl.lit(value=False))
    old = old_tokens(trace).with_columns(
        state=pl.lit(palette.HELD, pl.UInt8), is_old=pl.lit(value=True)
    )
    columns = [*KEY, "state", "from_ns", "to_ns", "table", "ref"]
    every = pl.concat([spans.select(columns), old.select(columns)])
    lanes = every.select(KEY).unique().sort(KEY).with_row_index("lane")
    ranks = lanes["rank"].unique().sort().to_list()
    names = tuple(
        _name(rank, slot, ranks, is_old=is_old) for rank, slot, is_old in lanes.select(KEY).rows()
    )
    placed = every.join(lanes, on=KEY, maintain_order="left").with_columns(
        start="from_ns", end=pl.max_horizontal("from_ns", pl.col("to_ns").fill_null(last_ns))
    )
    tables = placed["table"].unique(maintain_order=True)
    parts = (span_rows(placed.filter(pl.col("table") == table), table) for table in tables)
    return LaneSpans(names, [pl.concat(parts)] if len(tables) else [])


def _has_slots(trace: Trace) -> bool:
    rows = trace.batch_rows.select(pl.col("slot").is_not_null().any())
    claims = trace.allocations.select((pl.col("resource") == "slot").any())
    return any(found.collect().item() for found in (rows, claims))


def _name(rank: int, slot: int, ranks: list[int], *, is_old: bool) -> LaneName:
    label = f"slot {slot}" + " · old tokens" * is_old
    about = () if is_old else (("slot", slot),)
    return LaneName(rank, several_ranks("", rank, ranks), label, about)
