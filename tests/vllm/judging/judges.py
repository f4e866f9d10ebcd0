"""Holds a trace against what vLLM itself counted: its profile, its metrics, its clients' clocks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from stepscope.analyzers.check.run import check
from stepscope.analyzers.latency.blame import blame
from stepscope.ingest.trace import Trace

Row = dict[str, Any]
MS = 10**6


def tokens_of_steps(trace: Trace, rank: int = 0) -> list[tuple[int, int]]:
    """Requests and tokens of each step that ran any, in order; of a profile, as its tags say."""
    steps = trace.steps.filter(pl.col("rank") == rank).sort("step").collect()
    told = [
        (_sum(step, "num_prefill_reqs", "num_decode_reqs"),
         _sum(step, "num_prefill_tokens", "num_decode_tokens"))
        for step in steps.rows(named=True)
    ]  # fmt: skip
    return [step for step in told if step[1]]


def tokens_of_rows(trace: Trace, rank: int = 0) -> list[tuple[int, int]]:
    """The same, counted from the rows of batches."""
    rows = trace.batch_rows.filter(pl.col("rank") == rank)
    counted = rows.group_by("step").agg(pl.len(), pl.col("num_tokens").sum()).sort("step")
    return [(num, tokens) for _, num, tokens in counted.collect().rows()]


def wrong_latencies(trace: Trace, metrics: Row, within_ns: int = MS) -> tuple[list[str], int]:
    """Waits, first tokens and ends that differ by more from what the engine core counted, and how
    many were compared.
    """
    names = external_ids(trace)
    told = {names[row["request"]]: row for row in blame(trace).requests.rows(named=True)}
    arrived = _times(trace, "arrive")
    admitted, sampled = _times(trace, "admit"), _times(trace, "first-token")
    found: list[str] = []
    num_compared = 0
    for request in metrics["requests"]:
        row = told[request["id"]]
        queued_ns = arrived[row["request"]]
        pairs = {
            "wait": (_gap(request, "scheduled_ts"), _after(admitted.get(row["request"]), queued_ns))
        }
        if request["out"]:
            # The engine's own: a client that is given all at once has its first with the last.
            first_ns = _after(sampled.get(row["request"]), queued_ns)
            pairs["first token"] = (_gap(request, "first_token_ts"), first_ns)
        if request["reason"] in ("length", "stop"):
            pairs["last token"] = (
                _gap(request, "last_token_ts"),
                _after(row["ended_ns"], queued_ns),
            )
        num_compared += len(pairs)
        found += [
            f"{request['id']}: {name}: vLLM counts {true}, the trace {ours}"
            for name, (true, ours) in pairs.items()
            if (true is None) != (ours is None)
            or (true is not None and ours is not None and abs(true - ours) > within_ns)
        ]
    return found, num_compared


def external_ids(trace: Trace) -> dict[str, str]:
    """The client's own id of each request."""
    named = trace.lifecycle.drop_nulls("external_id").select("request", "external_id").unique()
    return dict(named.collect().rows())


def client_waits(trace: Trace, clients: Iterable[Row]) -> list[tuple[int, int]]:
    """Time to first token by the client's clock, and by blame, of those who know when it came."""
    told = {row["request"]: row for row in blame(trace).requests.rows(named=True)}
    requests = {external: name for name, external in external_ids(trace).items()}
    found = []
    for client in clients:
        row = told.get(requests.get(f"cmpl-{client['id']}-0", ""), {})
        knows = "first" in client and "late" not in client
        if knows and row.get("first_token_ns") is not None:
            ours = row["first_token_ns"] - row["arrive_ns"]
            found.append((client["first"] - client["sent"], ours))
    return found


def judged(trace: Trace) -> tuple[str, ...]:
    """The rules that could judge."""
    return tuple(check(trace).coverage.judged)


def told_findings(trace: Trace) -> list[str]:
    """What `check` says, a line each."""
    return [f"{found.code} {found.message}" for found in check(trace).findings]


def _times(trace: Trace, event: str) -> dict[str, int]:
    """When the event first happened to each request."""
    rows = trace.lifecycle.filter(pl.col("event") == event)
    return dict(rows.group_by("request").agg(pl.col("ts_ns").min()).collect().rows())


def _gap(request: Row, until: str) -> int | None:
    since, at = request["queued_ts"], request[until]
    return round((at - since) * 1e9) if since and at else None


def _after(at: int | None, since: int) -> int | None:
    return None if at is None else at - since


def _sum(step: Row, *names: str) -> int:
    return sum(step[name] or 0 for name in names)
