"""A request's page: what it got, its life in true order, and why it waited each time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.latency.blame import Blame
from stepscope.analyzers.summary.latencies import latencies
from stepscope.analyzers.summary.request_life import (
    BATCH,
    DECISION,
    EVENT,
    Life,
    Moment,
    request_life,
)  # fmt: skip
from stepscope.analyzers.summary.slo import Slo, judged
from stepscope.analyzers.views.requests import external_ids
from stepscope.app.present.blame_reasons import reasons, waits_of
from stepscope.app.present.blame_tables import outcome, request_table, waits_table
from stepscope.app.present.blocks import (
    AtChange,
    AtRequest,
    AtStep,
    Block,
    Fact,
    Heading,
    Link,
    Links,
    Paragraph,
    Table,
    Target,
    Title,
    Tone,
)  # fmt: skip
from stepscope.app.present.facts import decision
from stepscope.app.present.summary.slo_words import request_slo
from stepscope.app.present.where import RESOLUTION_NS
from stepscope.app.units import count, moment, shows_times, stated
from stepscope.ingest.trace import Trace

MOST_WAITS, MOST_MOMENTS, MOST_HOLDERS = 100, 300, 12
NO_REQUESTS = (
    "This trace names no requests, so there is no life of one to show. A recording of an engine "
    "names them, as its log may; stepscope merge adds a profile's kernels to a recording's steps."
)
NO_TIMES = "The trace has no clock, and the log does not state how long this request took."
NOT_THERE = "This trace has no such request."


def request_blocks(
    trace: Trace, blamed: Blame, who: tuple[int, str], first_ns: int, slo: Slo | None = None
) -> Iterator[Block]:
    """Everything about a request; `who` is its rank and id, `first_ns` when the trace begins.

    Reads rows, so a front calls it from a thread.
    """
    rank, request = who
    yield Title(f"request {request}")
    life = request_life(trace, rank, request)
    place = _place(blamed, who)
    if place is None:
        yield Paragraph(NO_TIMES if life.moments else NOT_THERE, Tone.WARNING)
        if life.moments:
            yield _life(life, first_ns)
        return
    own = of_request(blamed, place)
    yield from _facts(trace, own, life, who, first_ns)
    if slo:
        yield replace(request_slo(judged(trace, own, slo)), title="SLO")
    row, before = own.requests.row(0, named=True), own.to_first_token.row(0, named=True)
    yield replace(request_table(row, before), title="where its time went")
    waits = waits_of(own.intervals)
    if len(waits):
        told = reasons(trace, waits)
        every = waits_table(waits, told, MOST_WAITS, row["arrive_ns"])
        num_more = max(len(waits) - MOST_WAITS, 0)
        yield replace(every, title="every wait", num_more=num_more)
    if held := [name for name in life.holders() if name != request][:MOST_HOLDERS]:
        yield Heading("who held what it waited for, or went first")
        yield Links(tuple(Link(name, AtRequest(rank, name)) for name in held))
    yield _life(life, first_ns)


def of_request(blamed: Blame, place: int) -> Blame:
    """The blame of the one request at a place among `blamed.requests`."""
    row = blamed.requests.row(place, named=True)
    is_it = (pl.col("rank") == row["rank"]) & (pl.col("request") == row["request"])
    return Blame(
        blamed.trace,
        blamed.requests[place : place + 1],
        blamed.to_first_token[place : place + 1],
        blamed.intervals.filter(is_it),
        blamed.notes,
    )


def _place(blamed: Blame, who: tuple[int, str]) -> int | None:
    rank, request = who
    of = blamed.requests.with_row_index("place")
    found = of.filter(pl.col("rank") == rank, pl.col("request") == request)["place"]
    return int(found[0]) if len(found) else None


def _facts(
    trace: Trace, own: Blame, life: Life, who: tuple[int, str], first_ns: int
) -> Iterator[Block]:
    rank, request = who
    row, told = own.requests.row(0, named=True), latencies(trace, own).row(0, named=True)
    is_it = (pl.col("rank") == rank) & (pl.col("request") == request)
    if rank:
        yield Fact("rank", (f"{rank}",))
    for client in external_ids(trace).filter(is_it).collect()["external_id"]:
        yield Fact("client's id", (client,))
    came_ns = row["arrive_ns"] if shows_times() else life.moments[0].row["ts_ns"]
    yield Fact("came", (moment(came_ns - first_ns, RESOLUTION_NS),))
    yield Fact("ended", (f"{outcome(row)}, {stated(row['latency_ns'])} after it came",))
    yield Fact("TTFT", (_ttft(told),))
    yield Fact("TPOT", (_tpot(told),))
    yield Fact("tokens", (_tokens(life, told["num_tokens"]),))
    preempted = sum(m.row["event"] == "preempt" for m in life.moments if m.kind == EVENT)
    if any(m.kind == EVENT for m in life.moments):
        yield Fact("preempted", (times(preempted, "time") if preempted else "never",))
    if life.num_again:
        again = f"{times(life.tokens_again, 'token')} in {times(life.num_again, 'step')}"
        yield Fact("recomputed", (again,))


def _ttft(told: Mapping[str, Any]) -> str:
    """The client's, and the engine's where both are recorded."""
    if told["ttft_ns"] is None:
        return "no first token was recorded"
    first, of_engine = stated(told["ttft_ns"]), told["engine_ttft_ns"]
    if not told["is_delivered"]:
        return first
    engine = "engine not known" if of_engine is None else f"engine {stated(of_engine)}"
    return f"client {first}; {engine}"


def _tpot(told: Mapping[str, Any]) -> str:
    client, engine = _client_tpot(told), told["engine_tpot_ns"]
    if not told["is_delivered"]:
        return client
    return f"client {client}; engine {'not known' if engine is None else stated(round(engine))}"


def _client_tpot(told: Mapping[str, Any]) -> str:
    if told["tpot_ns"] is not None:
        return stated(round(told["tpot_ns"]))
    if told["num_tokens"] == 1:
        return "not known: it has one token"
    if told["ttft_ns"] is not None and told["ttft_ns"] == told["latency_ns"]:
        return "not known: all tokens came at once"
    return "not known" if told["latency_ns"] is not None else "not known: it did not finish"


def _tokens(life: Life, generated: int | None) -> str:
    arrivals = [m.row for m in life.moments if m.kind == EVENT and m.row["event"] == "arrive"]
    of_batches = [m.row["prompt_len"] for m in life.moments if m.kind == BATCH]
    known = [*(row["prompt_len"] for row in arrivals), *of_batches]
    prompt = next((length for length in known if length is not None), None)
    most = next((row["max_tokens"] for row in arrivals if row["max_tokens"] is not None), None)
    parts = [
        "prompt not known" if prompt is None else f"{count(prompt)} of prompt",
        "generated not known" if generated is None else f"{count(generated)} generated",
        *([] if most is None else [f"{count(most)} asked for at most"]),
    ]
    return ", ".join(parts)


def _life(life: Life, first_ns: int) -> Table:
    shown = life.moments[:MOST_MOMENTS]
    rows = [
        (moment(m.row["ts_ns"] - first_ns, RESOLUTION_NS), _steps(m), m.kind, _says(m))
        for m in shown
    ]
    order = "in the order of its changes" if life.is_counted else "in order of time"
    return Table(
        ("at", "step", "", "what"), tuple(rows), f"its life, {order}", ("at", "step"),
        num_more=len(life.moments) - len(shown), leads=tuple(map(_target, shown)),
    )  # fmt: skip


def _target(told: Moment) -> Target | None:
    """Where it was recorded: the change where these are counted, else the step."""
    seq, step = told.row["seq"], told.row["step"]
    if seq is not None:
        return AtChange(seq, step)
    return None if step is None else AtStep(step)


def _steps(told: Moment) -> str | None:
    first, last = told.row["step"], told.last["step"]
    if first is None:
        return None
    return f"{first:,}" if last in (first, None) else f"{first:,} to {last:,}"


def _says(told: Moment) -> str:
    times = f", {count(told.num)} times in a row" if told.num > 1 else ""
    if told.kind == DECISION:
        return f"{decision(told.row)}{times}"
    return _event(told.row) if told.kind == EVENT else _batch(told)


def _batch(told: Moment) -> str:
    phase = "recompute" if told.row["is_recompute"] else told.row["phase"] or "in a batch"
    return f"{phase}, {times(told.num_tokens, 'token')} in {times(told.num, 'step')}"


def _event(row: dict[str, Any] | Any) -> str:
    parts = [str(row["event"])]
    if row["cause"]:
        parts.append(row["cause"])
    if row["by_request"]:
        parts.append(f"for {row['by_request']}")
    if row["queue_index"] is not None:
        parts.append(f"place {count(row['queue_index'])} in the queue")
    if row["num_generated"] is not None:
        parts.append(f"{times(row['num_generated'], 'token')} generated")
    return ", ".join(parts)
