"""A profile in short: how busy its GPUs were and with what, its kernels, its steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
import polars.selectors as cs

from stepscope.analyzers.latency.gpu_time import on_gpu
from stepscope.analyzers.latency.kernel_kinds import KINDS
from stepscope.analyzers.summary.gpu_use import (
    gpu_use,
    kernel_sums,
    longest_steps,
    steps_by_kind,
    with_cores,
)  # fmt: skip
from stepscope.app.present.blocks import AtStep, Block, Fact, Heading, Paragraph, Table, Tone
from stepscope.app.present.step_words import tokens
from stepscope.app.present.summary.parts import Part
from stepscope.app.timeline.profile.top_names import shown
from stepscope.app.units import count, duration
from stepscope.app.widths import fit_middle
from stepscope.ingest.trace import Trace

MOST_KERNELS, MOST_STEPS, WIDEST_NAME = 12, 5, 34
CALLED = {"kernel": "other kernels", "communication": "exposed communication", "copy": "copies"}
"""What a kind is called of which its own name says too little; others go by it."""
NO_KERNELS = (
    "No kernel is in the file, so nothing is known of the GPU. torch.profiler records what it "
    "executes with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]."
)
NO_STEPS = (
    "No step is told: none of its annotations is one that says what a step was. An engine's own "
    'tags do, record_function("execute_context_1(64)_generation_3(3)"), or prof.step().'
)


def profile_parts(trace: Trace) -> Iterator[Part]:
    """What a profile's spans come to; a trace without spans has no such part."""
    if not trace.has("spans"):
        return
    use = gpu_use(trace)
    if not use.is_empty():
        yield Part(tuple(_gpu(use)))
        yield Part((_kernels(with_cores(kernel_sums(on_gpu(trace)), trace)),))
    elif not trace.has("core_spans"):
        yield Part((Heading("GPU"), Paragraph(NO_KERNELS, Tone.MUTED)))


def step_parts(trace: Trace) -> Iterator[Part]:
    """The steps by kind and the longest of them; of a profile without any, that there are none."""
    if trace.has("steps"):
        blocks = [_by_kind(steps_by_kind(trace))]
        walked = trace.steps.select(pl.col("rank").min()).collect().item()
        if longest := longest_steps(trace, MOST_STEPS).to_dicts():
            blocks.append(_longest(longest, walked))
        yield Part((Heading("steps"), *blocks))
    elif trace.has("spans") and not trace.has("core_spans"):
        yield Part((Heading("steps"), Paragraph(NO_STEPS, Tone.MUTED)))


def _gpu(use: pl.DataFrame) -> Iterator[Block]:
    rows = use.to_dicts()
    yield Heading("GPU", "as shares of the time from first span to last end")
    if len(rows) == 1:
        (row,) = rows
        yield Fact("device", (row["device"],))
        yield use_table(row)
        hidden = row["in_collectives_ns"] - row["communication_ns"]
        if row["in_collectives_ns"]:
            told = (
                f"{duration(row['in_collectives_ns'])}, {duration(hidden)} of it behind computing"
            )
            yield Fact("collectives", (told,))
    else:
        yield _devices(rows)


def uses(row: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """What a device was in, by the name that people give it, and how long in ns."""
    yield "busy", row["busy_ns"]
    for kind in KINDS:
        yield CALLED.get(kind, kind), row[f"{kind}_ns"]
    yield "idle", row["idle_ns"]


def use_table(row: Mapping[str, Any]) -> Table:
    """What a GPU was in for how long, and in what share of all that time."""
    whole = max(row["window_ns"], 1)
    rows = [(name, duration(ns), f"{ns / whole:.1%}") for name, ns in uses(row)]
    rows.append(("in all", duration(row["window_ns"]), ""))
    return Table(("", "time", "share"), tuple(rows), to_right=("time", "share"))


def _devices(rows: list[dict[str, Any]]) -> Table:
    are_several = len({row["rank"] for row in rows}) > 1
    told = [
        (
            f"rank {row['rank']} · {row['device']}" if are_several else row["device"],
            duration(row["window_ns"]),
            *(f"{ns / max(row['window_ns'], 1):.1%}" for _, ns in uses(row)),
        )
        for row in rows
    ]  # fmt: skip
    short = ("busy", "gemm", "attention", "other", "exposed comm.", "copies", "idle")
    return Table(("device", "in all", *short), tuple(told), to_right=("in all", *short))


def _kernels(sums: pl.DataFrame) -> Table:
    ranked = by_shown_name(sums)
    on_npu = ["cores"] if "cores" in sums.columns else []
    rows = [
        (
            row["name"], row["kind"], *(row[name] for name in on_npu), row["num"],
            duration(row["total_ns"]), f"{row['share']:.1%}",
            duration(round(row["total_ns"] / row["num"])), duration(row["most_ns"]),
        )
        for row in ranked.head(MOST_KERNELS).to_dicts()
    ]  # fmt: skip
    times = ("total", "share", "mean", "longest")
    return Table(
        ("kernel", "kind", *on_npu, "count", *times), tuple(rows), "top kernels and copies", times,
        num_more=len(ranked) - len(rows),
    )  # fmt: skip


def by_shown_name(sums: pl.DataFrame) -> pl.DataFrame:
    """Kernels by the names that lanes show: those of one name and kind are one row."""
    named = sums.with_columns(
        name=pl.Series([shown(name) for name in sums["name"]], dtype=pl.String)
    )
    ranked = (
        named.group_by("name", "kind")
        .agg(
            pl.col("num", "total_ns", "share").sum(),
            pl.col("most_ns").max(),
            cs.by_name("cores", require_all=False).drop_nulls().unique().sort().str.join(", "),
        )
        .sort("total_ns", "name", "kind", descending=[True, False, False])
    )
    fitted = [fit_middle(name, WIDEST_NAME) for name in ranked["name"]]
    return ranked.with_columns(name=pl.Series(fitted, dtype=pl.String))


def _by_kind(kinds: pl.DataFrame) -> Table:
    on_gpu = bool(kinds["num_on_gpu"].sum())
    rows = [
        (
            row["kind"], row["num"], _ns(row["mean_ns"]), _ns(row["most_ns"]),
            None if row["num_tokens"] is None else count(row["num_tokens"]),
            *([_busy(row)] if on_gpu else []),
        )
        for row in kinds.to_dicts()
    ]  # fmt: skip
    right = ("mean", "longest", "tokens", *(["GPU busy"] if on_gpu else []))
    return Table(("kind", "steps", *right), tuple(rows), to_right=right)


def _busy(row: dict[str, Any]) -> str | None:
    return f"{row['busy_ns'] / row['lasted_ns']:.1%}" if row["lasted_ns"] else None


def _longest(rows: list[dict[str, Any]], walked: int | None) -> Table:
    """The longest steps; those of the rank whose steps are walked lead to them."""
    known = [name for name in OF_STEP if any(row[OF_STEP[name]] is not None for row in rows)]
    told = [
        (
            _step(row), row["kind"] or "unknown", duration(row["dur_ns"]),
            *(_ns(row[OF_STEP[name]]) for name in known), tokens(row),
        )
        for row in rows
    ]  # fmt: skip
    right = ("took", *known)
    leads = tuple(AtStep(row["step"]) if row["rank"] == walked else None for row in rows)
    return Table(("step", "kind", *right, "tokens"), tuple(told), "the longest", right, leads=leads)


OF_STEP = {"on the CPU": "cpu_dur_ns", "GPU busy": "gpu_busy_ns"}
"""What is known of a step of a profile alone, and in which column."""


def _step(row: dict[str, Any]) -> str:
    return f"rank {row['rank']} · {row['step']:,}" if row["rank"] else f"{row['step']:,}"


def _ns(ns: float | None) -> str | None:
    return None if ns is None else duration(round(ns))
