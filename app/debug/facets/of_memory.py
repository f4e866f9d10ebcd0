"""Memory at a position: KV blocks and slots with their holders, what is cached, buffers."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.analyzers.views.known import knows
from stepscope.app.debug.facets.look import Facet, Look
from stepscope.app.debug.formed import BEFORE_ALL
from stepscope.ingest.derive.holding_intervals import HANDS


def _holds(look: Look, resource: str) -> pl.LazyFrame:
    """What is held, a row for each holder; `since_ns` is after the trace began."""
    first_ns = look.debugger.bounds_ns[0]
    seq = look.position.seq or BEFORE_ALL
    goes_on = pl.coalesce(pl.col("to_seq") > seq, pl.col("to_ns") > look.ts_ns, pl.lit(value=True))
    has_begun = pl.coalesce(pl.col("seq") <= seq, pl.col("ts_ns") <= look.ts_ns)
    is_held = (pl.col("resource") == resource) & has_begun & goes_on
    held = look.rows("holds").filter(is_held)
    return held.select("id", "owner", "step", since_ns=pl.col("ts_ns") - first_ns)


def _has(look: Look, resource: str) -> bool:
    """Whether the rank ever tells of the resource."""
    told = look.rows("allocations").filter(pl.col("resource") == resource).head(1)
    return len(told.collect()) > 0


def _blocks(look: Look) -> pl.DataFrame | None:
    if look.state.kv_blocks is None:
        return None
    held = _holds(look, "kv-block").group_by("id").agg(
        pl.col("owner").first(), sharers=pl.col("owner").n_unique(),
        step=pl.col("step").first(), since_ns=pl.col("since_ns").first(),
    )  # fmt: skip
    return held.sort("id").collect()


def _sharers(look: Look) -> pl.DataFrame | None:
    if not _has(look, "kv-block"):
        return None
    is_shared = pl.col("owner").n_unique().over("id") > 1
    return _holds(look, "kv-block").filter(is_shared).sort("id").collect()


def _cached(look: Look) -> pl.DataFrame | None:
    """Blocks that the prefix cache finds and nobody holds."""
    ops = look.then("allocations").filter(pl.col("op").is_in(["cache", "evict"]))
    if not len(look.rows("allocations").filter(pl.col("op") == "cache").head(1).collect()):
        return None
    last = ops.group_by("id").agg(pl.col("op").last(), pl.col("block_hash").last())
    held = _holds(look, "kv-block")
    is_cached = last.filter(pl.col("op") == "cache").select("id", "block_hash")
    return is_cached.join(held, on="id", how="anti").sort("id").collect()


def _slots(look: Look) -> pl.DataFrame | None:
    """Slots with their holder, how often each had been claimed, and how many tokens lie in it."""
    if not _has(look, "slot"):
        return None
    is_slot = (pl.col("resource") == "slot") & pl.col("op").is_in(HANDS)
    told = look.then("allocations").filter(is_slot)
    claimed = told.group_by("id").agg(pl.col("generation").drop_nulls().last())
    length = pl.col("num_computed") + pl.col("num_tokens")
    rows = look.then("batch_rows").drop_nulls("slot")
    lengths = rows.group_by(id=pl.col("slot").cast(pl.Int64), owner="request").agg(
        num_tokens=length.last()
    )
    if look.state.slot_tokens is not None:
        return _with_lengths(_holds(look, "slot"), claimed, look.state.slot_tokens)
    held = _holds(look, "slot").join(claimed, on="id", how="left")
    return held.join(lengths, on=["id", "owner"], how="left").sort("id").collect()


def _with_lengths(
    held: pl.LazyFrame, claimed: pl.LazyFrame, slot_tokens: Mapping[int, int]
) -> pl.DataFrame:
    """Add what lies in each slot, and the slots in which something lies that nobody holds."""
    schema = {"id": pl.Int64, "num_tokens": pl.Int64}
    told = pl.LazyFrame([*slot_tokens.items()], schema, orient="row")
    every = held.join(told, on="id", how="full", coalesce=True)
    is_shown = pl.col("owner").is_not_null() | (pl.col("num_tokens") > 0)
    shown = every.filter(is_shown).join(claimed, on="id", how="left").sort("id")
    columns = ("id", "owner", "step", "since_ns", "generation", "num_tokens")
    return shown.select(columns).collect()


def _buffers(look: Look) -> pl.DataFrame | None:
    """The last that was done to each buffer, and the epoch of its contents then."""
    if not knows(look.debugger.trace, "accesses.buffer"):
        return None
    told = look.then("accesses").drop_nulls("buffer")
    return told.group_by("buffer").agg(
        pl.col("epoch").drop_nulls().last(), pl.col("op", "stream", "step").last(),
        num_reads=(pl.col("op") == "read").sum(), num_writes=(pl.col("op") == "write").sum(),
    ).sort("buffer").collect()  # fmt: skip


OF_MEMORY: tuple[Facet, ...] = (
    Facet("blocks", "KV blocks that are held, and by whom", ("allocations",), "id", _blocks),
    Facet("sharers", "KV blocks with several holders", ("allocations",), "id", _sharers),
    Facet("cached", "free KV blocks that the prefix cache can still find", ("allocations",), "id",
          _cached),
    Facet("slots", "slots that are held: generation, tokens", ("allocations",), "id", _slots),
    Facet("buffers", "epoch of each buffer, and who touched it last", ("accesses",), "buffer",
          _buffers),
)  # fmt: skip
