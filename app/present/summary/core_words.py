"""Core groups in short: how busy each kind of core was, the groups held longest, kernels."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analyzers.summary.core_use import by_kind, core_use, kernels_on_cores, sum_of_all
from stepscope.app.present.blocks import Heading, Paragraph, Table, Tone
from stepscope.app.present.summary.parts import Part
from stepscope.app.units import duration
from stepscope.app.widths import fit_middle
from stepscope.ingest.schema import CORE_KINDS
from stepscope.ingest.trace import Trace

MOST_GROUPS, MOST_KERNELS, WIDEST_NAME = 8, 12, 26
NOT_MEASURED = (
    "What is recorded of the cores is an order, and no times: how long they ran or were held is "
    "not known. The runtime's swimlane records (chip_swimlane_records.json) have times."
)
NONE_ENDED = "No block of a task is known to have ended, so that no kernel has times."


def core_parts(trace: Trace) -> Iterator[Part]:
    """What core groups did; a trace without them has no such part."""
    if not trace.has("core_spans"):
        return
    if not trace.manifest.is_measured("core_spans"):
        yield Part((Heading("core groups"), Paragraph(NOT_MEASURED, Tone.MUTED)))
        return
    use = core_use(trace)
    if use.is_empty():
        return
    told = "as shares of the time from first dispatch to last end"
    yield Part((Heading("core groups", told), _by_kind(use), _groups(use)))
    kernels = kernels_on_cores(trace)
    missing = (Heading("kernels"), Paragraph(NONE_ENDED, Tone.MUTED))
    yield Part(missing if kernels.is_empty() else (_kernels(kernels),))


def _by_kind(use: pl.DataFrame) -> Table:
    """What the cores of each kind did, all groups together."""
    rows = [
        (
            row["core_kind"] or "unknown", row["num_cores"], row["num_blocks"],
            _share(row["run_ns"], row["window_ns"]), _share(row["held_ns"], row["window_ns"]),
            _ns(row["held_ns"]),
        )
        for row in by_kind(use).to_dicts()
    ]  # fmt: skip
    right = ("running", "held", "held in all")
    return Table(("cores of kind", "cores", "blocks", *right), tuple(rows), to_right=right)


def _groups(use: pl.DataFrame) -> Table:
    """The groups whose cores were held longest, and how much each of these ran."""
    running = [
        (pl.col("run_ns") / pl.col("window_ns").clip(1))
        .filter(pl.col("core_kind") == kind)
        .mean()
        .alias(kind)
        for kind in CORE_KINDS
    ]
    held = (
        use.group_by("rank", "group")
        .agg(*running, sum_of_all("held_ns"), pl.col("window_ns").sum())
        .sort("held_ns", "rank", "group", descending=[True, False, False], nulls_last=True)
    )
    rows = [
        (
            _group(row["rank"], row["group"]), *map(_told, (row[kind] for kind in CORE_KINDS)),
            _ns(row["held_ns"]), _share(row["held_ns"], row["window_ns"]),
        )
        for row in held.head(MOST_GROUPS).to_dicts()
    ]  # fmt: skip
    names = tuple(f"{kind} running" for kind in CORE_KINDS)
    right = (*names, "held", "share")
    return Table(
        ("group", *right), tuple(rows), "groups, the longest held first", right,
        num_more=len(held) - len(rows),
    )  # fmt: skip


def _kernels(kernels: pl.DataFrame) -> Table:
    rows = [
        (
            fit_middle(row["kernel"], WIDEST_NAME), row["shape"], row["num_tasks"],
            row["num_blocks"], _ns(row["held_ns"]), duration(row["run_ns"]),
            *map(_ns, (row["skew_ns"], row["most_skew_ns"], row["dispatch_ns"])),
        )
        for row in kernels.head(MOST_KERNELS).to_dicts()
    ]  # fmt: skip
    right = ("held", "run", "skew", "worst skew", "dispatch")
    return Table(
        ("kernel", "shape", "tasks", "blocks", *right), tuple(rows), "kernels", right,
        num_more=len(kernels) - len(rows), notes=(KERNEL_NOTE,) * len(rows),
    )  # fmt: skip


KERNEL_NOTE = (
    "held: cores waited for its blocks to begin; run: all parts of its blocks together; skew: from "
    "the first part's begin to the last one's, of MIX; dispatch: from when a block was ready and "
    "its core free until it began"
)


def _group(rank: int, group: int | None) -> str:
    name = "in no known group" if group is None else f"group {group}"
    return f"rank {rank} · {name}" if rank else name


def _share(part_ns: int | None, whole_ns: int) -> str | None:
    return None if part_ns is None else f"{part_ns / max(whole_ns, 1):.1%}"


def _told(share: float | None) -> str | None:
    return None if share is None else f"{share:.1%}"


def _ns(ns: int | None) -> str | None:
    return None if ns is None else duration(ns)
