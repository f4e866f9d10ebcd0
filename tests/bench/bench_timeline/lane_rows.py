"""Traces of many rows, each of what one kind of lane is made of, as an engine writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stepscope.ingest.frames import conform
from stepscope.ingest.manifest import Manifest, write_manifest
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.storage.store import parquet_name, write_parquet

STEP_NS, NUM_SLOTS, STEPS_PER_REQUEST = 1_000, 64, 200
NUM_RANKS, NUM_BLOCKS, BLOCKS_PER_REQUEST = 8, 8_192, 32
PHASES = ("decode", "prefill")
LIFE = ("arrive", "admit", "first-token", "preempt", "resume", "finish")
QUEUE_LENGTH, NUM_PREEMPTED = 200, 10
Frames = dict[str, pl.DataFrame]


def write_rows(path: Path, frames: Mapping[str, pl.DataFrame], ranks: int = 1) -> None:
    """Write a closed trace of some tables; rows that name no rank are of rank 0."""
    for name, rows in frames.items():
        full = rows if "rank" in rows.columns else rows.with_columns(rank=pl.lit(0, pl.Int32))
        whole = conform(BY_NAME[name], full.lazy()).collect()
        for rank in range(ranks):
            own = whole.filter(pl.col("rank") == rank)
            write_parquet(own, path / name / f"rank={rank}" / parquet_name(1, 1))
    states = dict.fromkeys(frames, "complete")
    manifest = Manifest(producer="bench", tables=states, ranks=tuple(range(ranks)))
    write_manifest(manifest, path / "manifest.json")


def batch_rows(num_rows: int) -> Frames:
    """Steps of 64 requests, each in a slot for 200 steps; its first row is a prefill."""
    row = np.arange(num_rows)
    step, slot = row // NUM_SLOTS, row % NUM_SLOTS
    turn, place = np.divmod(step + slot * 3, STEPS_PER_REQUEST)
    number = turn * NUM_SLOTS + slot
    rows = pl.DataFrame(
        {
            "step": step, "ts_ns": step * STEP_NS, "row": slot, "slot": slot,
            "request": _texts(number, "req-"), "phase": _words((place == 0).astype(int), PHASES),
            "num_tokens": np.where(place == 0, 128, 1), "num_computed": np.maximum(place - 1, 0),
        }
    )  # fmt: skip
    return {"steps": _steps(int(step[-1]) + 1), "batch_rows": rows}


def claimed_slots(num_rows: int) -> Frames:
    """The same, with the claims and releases of the slots."""
    frames = batch_rows(num_rows)
    stays = (
        frames["batch_rows"]
        .group_by("request", "slot", maintain_order=True)
        .agg(pl.col("ts_ns").first(), pl.col("step").first(), last_ns=pl.col("ts_ns").last())
    )
    columns: dict[str, Any] = {"resource": pl.lit("slot"), "id": "slot", "owner": "request"}
    claims = stays.select("ts_ns", "step", op=pl.lit("claim"), **columns)
    releases = stays.select(ts_ns=pl.col("last_ns") + STEP_NS - 1, op=pl.lit("release"), **columns)
    rows = pl.concat([claims, releases], how="diagonal").sort("ts_ns", maintain_order=True)
    return {**frames, "allocations": rows}


def waiting_requests(num_rows: int) -> Frames:
    """Requests that wait for some 200 others, a few of them out of turn; one in ten is preempted.

    A preempted request waits at the head of the queue for some steps.
    """
    num = num_rows * NUM_PREEMPTED // (4 * NUM_PREEMPTED + 2) + 1
    number, event = (each.ravel() for each in np.indices((num, len(LIFE))))
    random = np.random.default_rng(1)
    waits = random.integers(1, 20 * STEP_NS, (num, len(LIFE)))
    waits[:, 0] = np.arange(num) * STEP_NS
    waits[:, 1] = QUEUE_LENGTH * STEP_NS + random.geometric(0.5, num) * STEP_NS
    ts_ns = np.cumsum(waits, axis=1).ravel()
    is_there = (number % NUM_PREEMPTED == 0) | (event < LIFE.index("preempt"))
    is_there |= event == LIFE.index("finish")
    number, event, ts_ns = number[is_there], event[is_there], ts_ns[is_there]
    order = np.argsort(ts_ns, kind="stable")[:num_rows]
    is_preempted = pl.Series(event[order] == LIFE.index("preempt"))
    rows = pl.DataFrame(
        {
            "ts_ns": ts_ns[order], "seq": np.arange(num_rows),
            "request": _texts(number[order], "req-"), "event": _words(event[order], LIFE),
            "queue_index": pl.Series(np.zeros(num_rows, np.int32)).set(~is_preempted, None),
        }
    )  # fmt: skip
    return {"lifecycle": rows}


def collective_calls(num_rows: int) -> Frames:
    """All-reduces of eight ranks, which enter each of them some time apart."""
    ordinal, rank = np.divmod(np.arange(num_rows), NUM_RANKS)
    late = np.random.default_rng(1).integers(0, 300, num_rows)
    rows = pl.DataFrame(
        {
            "rank": rank.astype(np.int32), "ordinal": ordinal, "ts_ns": ordinal * STEP_NS + late,
            "dur_ns": 700 - late,
        }
    ).with_columns(
        step=ordinal // 64, op=pl.lit("all-reduce"), dtype=pl.lit("bfloat16"), group=pl.lit("tp"),
        num_elements=pl.lit(4096), expected_ranks=pl.lit(",".join(map(str, range(NUM_RANKS)))),
    )  # fmt: skip
    return {"collectives": rows}


def kv_blocks(num_rows: int) -> Frames:
    """Requests claim 32 blocks at once, and give all of them back when their turn is over."""
    num_turns = num_rows // (2 * BLOCKS_PER_REQUEST)
    live = NUM_BLOCKS // BLOCKS_PER_REQUEST
    turn, place = (each.ravel() for each in np.indices((num_turns, BLOCKS_PER_REQUEST)))
    block = turn % live * BLOCKS_PER_REQUEST + place
    claims, releases = turn * STEP_NS, (turn + live) * STEP_NS - 1
    ts_ns = np.concatenate((claims, releases))
    order = np.argsort(ts_ns, kind="stable")
    of = np.concatenate((turn, turn))[order]
    rows = pl.DataFrame(
        {
            "ts_ns": ts_ns[order], "seq": np.arange(len(order)),
            "id": np.concatenate((block, block))[order], "owner": _texts(of, "req-"),
            "op": _words(np.repeat((0, 1), len(turn))[order], ("claim", "release")),
        }
    ).with_columns(resource=pl.lit("kv-block"))  # fmt: skip
    return {"allocations": rows}


def segments(num_rows: int) -> Frames:
    """Mixed steps of a prefill and a decode segment, whose times were not recorded."""
    step, segment = np.divmod(np.arange(num_rows), 2)
    rows = pl.DataFrame(
        {
            "step": step, "ts_ns": step * STEP_NS, "segment": segment,
            "phase": _words(1 - segment, PHASES), "num_rows": 1 + 63 * segment,
            "num_tokens": np.where(segment == 0, 512, 64),
        }
    )  # fmt: skip
    return {"steps": _steps(num_rows // 2, "mixed"), "segments": rows}


STAGED = ("cu_seqlens_q", "input_ids", "positions", "slot_mapping", "block_tables")


def accesses(num_rows: int) -> Frames:
    """Five staging buffers a step: written by the host, copied, read; events order all of it."""
    step = pl.DataFrame(_a_step(), schema=["op", "stream", "buffer", "event"], orient="row")
    num_steps = -(-num_rows // len(step))
    number = np.repeat(np.arange(num_steps), len(step))
    place = np.tile(np.arange(len(step)), num_steps)
    rows = step[pl.Series(place)].with_columns(
        step=pl.Series(number), ts_ns=pl.Series(number * STEP_NS + place), segment=pl.lit(0),
        event=pl.col("event") + " " + pl.Series(number).cast(pl.String),
        epoch=pl.when(pl.col("buffer").is_not_null()).then(pl.Series(number)),
        first=pl.when(pl.col("buffer").is_not_null()).then(0),
        last=pl.when(pl.col("buffer").is_not_null()).then(256),
    )  # fmt: skip
    return {"accesses": rows.head(num_rows)}


def _a_step() -> list[tuple[str, str, str | None, str | None]]:
    written, staged, ran = "written", "staged", "ran"
    return [
        *(("write", "host", f"pinned {name}", None) for name in STAGED),
        ("record", "host", None, written), ("wait", "copy", None, written),
        *(row for name in STAGED for row in (
            ("copy", "copy", f"pinned {name}", None), ("write", "copy", f"shared {name}", None),
        )),
        ("record", "copy", None, staged), ("wait", "compute", None, staged),
        *(("read", "compute", f"shared {name}", None) for name in STAGED),
        ("record", "compute", None, ran), ("wait", "host", None, ran),
    ]  # fmt: skip


def _steps(num: int, kind: str = "decode") -> pl.DataFrame:
    step = np.arange(num)
    return pl.DataFrame({"step": step, "ts_ns": step * STEP_NS}).with_columns(
        kind=pl.lit(kind), dur_ns=pl.lit(STEP_NS)
    )


def _texts(numbers: Any, before: str) -> pl.Series:
    return before + pl.Series(numbers).cast(pl.String)


def _words(numbers: Any, words: Any) -> pl.Series:
    return pl.Series(list(words))[pl.Series(numbers).cast(pl.UInt32)]


KINDS: dict[str, tuple[str, Callable[[int], Frames]]] = {
    "requests": ("requests", batch_rows),
    "slots": ("slots", claimed_slots),
    "queue": ("waiting queue", waiting_requests),
    "collectives": ("collective calls", collective_calls),
    "kv-blocks": ("KV blocks", kv_blocks),
    "segments": ("segments", segments),
    "buffers": ("buffers", accesses),
}
"""The kinds of lanes: the section of each, and what makes so many rows of it."""
