"""How a run went, in numbers and in lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from stepscope.app.mcp.answering.uncut import Answer, NotRecorded
from stepscope.app.mcp.tools.tool import Arguments, Tool, TraceName, text

if TYPE_CHECKING:
    from stepscope.app.mcp.desk.held_traces import HeldTraces

OF_COLUMNS = {
    "latency_p50_ns": ("latencies of requests, from arrival to end", ("lifecycle",)),
    "ttft_p50_ns": ("times to the first token", ("lifecycle",)),
    "tpot_p50_ns": ("times for each token after the first", ("lifecycle", "outputs")),
    "engine_ttft_p50_ns": ("times to the engine's first token", ("lifecycle",)),
    "engine_tpot_p50_ns": (
        "times for each token after the engine's first",
        ("lifecycle", "outputs"),
    ),
    "token_gap_p50_ns": ("times from one token to the next", ("outputs",)),
    "requests": ("how many requests there were", ("lifecycle", "batch_rows")),
    "arrived": ("how many requests arrived", ("lifecycle",)),
    "finished": ("how many requests finished", ("lifecycle",)),
    "preemptions": ("preemptions", ("lifecycle",)),
    "tokens": ("tokens of requests", ("batch_rows",)),
    "waiting_mean": ("how many requests waited", ("lifecycle",)),
    "running_mean": ("how many requests ran", ("lifecycle",)),
    "kv_usage_mean": ("use of the KV cache", ("steps",)),
    "gpu_busy": ("what a GPU executed", ("spans",)),
    "cores_run": ("what cores of core groups executed", ("core_spans",)),
    "steps": ("steps", ("steps",)),
    "config": ("the configuration of the run", ("lifecycle",)),
}
"""Columns of a row of `stepscope summary`: what is not recorded where one is null."""
AT_ONCE = NotRecorded(
    "times for each token after the first, as clients got them",
    "clients got all tokens at once; engine_tpot_p50_ns is of the tokens as they were sampled",
)
OF_ENGINE = {"engine_ttft_p50_ns": "ttft_p50_ns", "engine_tpot_p50_ns": "tpot_p50_ns"}
"""Columns of the engine's own tokens; where those of clients lack as well, they are not named."""
LEFT_TO_OTHERS = ("findings", "not_applicable", "config", "trace", "reference", "divergence",
                  "diverged_step")  # fmt: skip


class Summed(Arguments, frozen=True):
    """Which trace, and what its latencies are held against."""

    trace: TraceName
    slo: Annotated[
        str,
        text(
            "Limits of latencies, as in ttft=500ms,tpot=50ms: who met them, and goodput. Also "
            "latency, and engine_ttft and engine_tpot of tokens as the engine sampled them."
        ),
    ] = ""


def _answer(held: HeldTraces, asked: Summed) -> Answer:
    from stepscope.analyzers.many_runs.trace_row import trace_row
    from stepscope.analyzers.summary.slo import slo_of
    from stepscope.app.mcp.desk.recorded_by import lacks
    from stepscope.app.present.plain_text import lines
    from stepscope.app.present.summary.summing import summary

    slo = slo_of(asked.slo) if asked.slo else None
    opened = held.trace(asked.trace)
    row = trace_row(
        opened.trace, opened.name, opened.checked, None if slo is None else (asked.slo, slo)
    )
    numbers = {
        name: value
        for name, value in row.items()
        if value is not None and name not in LEFT_TO_OTHERS
    }
    every = lines(summary(opened.trace, opened.blamed, slo).blocks)
    told = [line for line in every if line.strip(" ─")]  # below the heads of tables is a rule
    lacking = [
        AT_ONCE
        if name == "tpot_p50_ns" and not _unknown(row, "engine_tpot_p50_ns")
        else lacks(what, *tables)
        for name, (what, tables) in OF_COLUMNS.items()
        if _unknown(row, name) and not _unknown(row, OF_ENGINE.get(name, "trace"))
    ]
    if slo is not None and row.get("slo_unknown", 0):
        lacking.append(NotRecorded(f"whether {row['slo_unknown']:,} requests met the SLO",
                                   "it takes their arrival, first token and end"))  # fmt: skip
    return Answer(
        {"trace": opened.name, "numbers": numbers},
        told,
        "lines of the summary",
        tuple(lacking),
        notes=("a number that is not among these is not recorded; names that end in _ns are "
               "nanoseconds",),
    )  # fmt: skip


def _unknown(row: dict[str, Any], name: str) -> bool:
    return row.get(name) is None


SUMMARY = Tool(
    "summary",
    "Sum a trace up",
    "Sum a run up: steps, requests, tokens, preemptions, quantiles of latency, time to first token "
    "and time per token, how much waited and ran, use of KV cache, GPUs and cores, with an SLO "
    "goodput and who missed it. What a trace does not tell is listed as not recorded.",
    Summed,
    _answer,
)
