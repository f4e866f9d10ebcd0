"""Latencies counted row by row from `lifecycle` and `outputs`, with nothing but Python."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from stepscope.ingest.trace import Trace

Key = tuple[int, str]
ENDS = ("finish", "reject", "abort", "error")


def raw_latencies(trace: Trace) -> dict[Key, dict[str, Any]]:
    """By rank and request: the latencies and the outcome, None where not known."""
    events: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    columns = ("rank", "request", "event", "ts_ns", "num_generated")
    for row in trace.lifecycle.select(columns).collect().to_dicts():
        if row["request"] is not None and row["ts_ns"] is not None:
            events[row["rank"], row["request"]].append(row)
    times = _token_times(trace)
    return {key: _of(rows, times.get(key), trace) for key, rows in events.items()}


def _token_times(trace: Trace) -> dict[Key, list[tuple[int | None, int]]]:
    times: dict[Key, list[tuple[int | None, int]]] = defaultdict(list)
    columns = ("rank", "request", "ts_ns", "position", "is_placeholder")
    for row in trace.outputs.select(columns).collect().to_dicts():
        if not row["is_placeholder"]:
            times[row["rank"], row["request"]].append((row["ts_ns"], row["position"]))
    return times


def _of(
    rows: list[dict[str, Any]], tokens: list[tuple[int | None, int]] | None, trace: Trace
) -> dict[str, Any]:
    def at(*names: str) -> list[int]:
        return [row["ts_ns"] for row in rows if row["event"] in names]

    came, ends = at("receive", "arrive"), [r for r in rows if r["event"] in ENDS]
    end = min(ends, key=lambda row: (row["ts_ns"], row["event"])) if ends else None
    outcome = end["event"] if end else None
    given = [r for r in rows if r["event"] == "deliver" and r["num_generated"] != 0]
    first = min([row["ts_ns"] for row in given] or at("first-token"), default=None)
    told = [row["num_generated"] for row in rows if row["num_generated"]]
    number = len(tokens or []) if trace.has("outputs") else max(told, default=0)
    last = max([end["ts_ns"], *at("deliver")]) if end else None
    ttft = first - min(came) if came and first is not None else None
    latency = last - min(came) if came and outcome == "finish" and last is not None else None
    tpot = None
    if latency is not None and ttft is not None and number > 1 and latency > ttft:
        tpot = (latency - ttft) / (number - 1)
    sampled = min(at("first-token"), default=None)
    in_engine = end["ts_ns"] - sampled if end and sampled is not None else 0
    return {
        "ttft_ns": ttft,
        "tpot_ns": tpot,
        "latency_ns": latency,
        "outcome": outcome,
        "engine_ttft_ns": sampled - min(came) if came and sampled is not None else None,
        "engine_tpot_ns": in_engine / (number - 1)
        if latency is not None and number > 1 and in_engine > 0
        else None,
    }
