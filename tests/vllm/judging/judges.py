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
    """What blame and the trace say of waits, first and last tokens that differs by more from what
    vLLM's engine core and its front end counted, and how many were compared.

    The engine core's clock is held against when the engine had a token, the front end's against
    when it gave it to the client: blame counts what lies between the two as delivery.
    """
    names, told = external_ids(trace), blame(trace)
    rows = {names[row["request"]]: row for row in told.requests.rows(named=True)}
    left_engine = _began_last(told.intervals, "delivery")
    arrived = _times(trace, "arrive")
    admitted, sampled = _times(trace, "admit"), _times(trace, "first-token")
    found: list[str] = []
    num_compared = 0
    for request in metrics["requests"]:
        row = rows[request["id"]]
        name, queued_ns = row["request"], arrived[row["request"]]
        pairs = {"wait": (_gap(request, "scheduled_ts"), _after(admitted.get(name), queued_ns))}
        if request["out"]:
            first_ns = _after(sampled.get(name), queued_ns)
            pairs["first token"] = (_gap(request, "first_token_ts"), first_ns)
        if request["out"] and row["first_token_ns"] != row["ended_ns"]:  # not given all at once
            given_ns = _after(row["first_token_ns"], row["arrive_ns"])
            pairs["first token given"] = (round(request["first_token_latency"] * 1e9), given_ns)
        if request["reason"] in ("length", "stop"):
            last_ns = _after(left_engine.get(name, row["ended_ns"]), queued_ns)
            pairs["last token"] = (_gap(request, "last_token_ts"), last_ns)
        num_compared += len(pairs)
        found += [
            f"{request['id']}: {what}: vLLM counts {true}, the trace {ours}"
            for what, (true, ours) in pairs.items()
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


def _began_last(intervals: pl.DataFrame, cause: str) -> dict[str, int]:
    """Since when each request's last interval of this cause has lasted."""
    rows = intervals.filter(pl.col("cause") == cause)
    return dict(rows.group_by("request").agg(pl.col("from_ns").max()).rows())


def _gap(request: Row, until: str) -> int | None:
    since, at = request["queued_ts"], request[until]
    return round((at - since) * 1e9) if since and at else None


def _after(at: int | None, since: int) -> int | None:
    return None if at is None else at - since


def _sum(step: Row, *names: str) -> int:
    return sum(step[name] or 0 for name in names)
