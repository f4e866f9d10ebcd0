"""An SLO is met, missed or not known, and goodput is what meets all of it a second."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

from stepscope.analyzers.latency.blame import blame
from stepscope.analyzers.summary.latencies import METRICS, gaps_ns, latencies
from stepscope.analyzers.summary.slo import Judged, judged, slo_of
from stepscope.ingest.derive.states import is_list_of_arrivals
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import Row, event
from tests.analyzers.summary.every_trace import each_file, opened
from tests.analyzers.summary.raw_requests import raw_latencies
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

MS = 1_000_000


def served(request: str, arrived: int, first: int | None, ended: int, tokens: int = 3) -> list[Row]:
    """A request that finished; times are in ms, and the first token may not be recorded."""
    told = [event(request, "arrive", arrived * MS), event(request, "admit", arrived * MS)]
    if first is not None:
        told.append(event(request, "first-token", first * MS))
    return [*told, event(request, "finish", ended * MS, num_generated=tokens)]


def judged_of(slo: str, *lives: list[Row], **more: Any) -> Judged:
    trace = trace_of(lifecycle=[row for life in lives for row in life], **more)
    return judged(trace, blame(trace), slo_of(slo))


def verdicts(found: Judged) -> dict[str, str]:
    return dict(found.requests.select("request", "verdict").iter_rows())


def test_an_slo_is_read_with_the_unit_of_each_limit() -> None:
    assert slo_of("tpot=50us, ttft=1.5s").limits_ns == {"ttft": 1_500 * MS, "tpot": 50_000}
    assert slo_of("latency=7ns").limits_ns == {"latency": 7}


@looped("text", [
    "", "ttft", "ttft=", "ttft=5", "ttft=5m", "ttft=0ms", "ttft=-5ms", "ttft=nan ms", "itl=5ms",
    "ttft=5ms,ttft=6ms", "ttft=5ms,", "ttft=1e9s", "ttft=9999999999s", "TTFT=5ms",
    "ttft=0.0000001ns", "ttft=\uff15ms",
])  # fmt: skip
def test_what_is_no_slo_is_refused_in_a_line_that_says_what_one_is(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        slo_of(text)

    assert str(refused.value).startswith("--slo ")
    assert "\n" not in str(refused.value)


def test_goodput_counts_what_meets_every_limit_over_first_arrival_to_last_end() -> None:
    good, slow_first, slow_after = (
        served("good", 0, 10, 30), served("slow-first", 0, 60, 70), served("slow", 0, 10, 2_000)
    )  # fmt: skip

    found = judged_of("ttft=50ms,tpot=20ms", good, slow_first, slow_after)

    assert verdicts(found) == {"good": "met", "slow-first": "missed", "slow": "missed"}
    assert found.span_ns == 2_000 * MS
    assert found.goodput == 0.5
    assert found.throughput == 1.5


def test_a_limit_itself_is_met_and_a_nanosecond_more_is_not() -> None:
    found = judged_of("ttft=10ms", served("at", 0, 10, 30), [
        event("over", "arrive", 0), event("over", "first-token", 10 * MS + 1),
        event("over", "finish", 30 * MS),
    ])  # fmt: skip

    assert verdicts(found) == {"at": "met", "over": "missed"}


def test_without_a_first_token_it_is_not_known_and_counted_apart() -> None:
    found = judged_of("ttft=5ms", served("told", 0, 4, 9), served("untold", 0, None, 9))

    assert found.counts == {"met": 1, "missed": 0, "unknown": 1, "not served": 0}
    (ttft,) = found.objectives()
    assert (ttft.num_met, ttft.num_missed, ttft.num_unknown) == (1, 0, 1)


def test_where_nothing_is_known_goodput_is_not_known_either() -> None:
    assert judged_of("ttft=5ms", served("untold", 0, None, 9)).goodput is None


def test_who_has_not_finished_meets_nothing_yet_and_may_be_late_already() -> None:
    waits = [event("waits", "arrive", 0), event("waits", "admit", 1 * MS)]
    early = [event("early", "arrive", 90 * MS)]

    found = judged_of("latency=50ms", served("done", 0, 5, 10), waits, early, [
        event("late", "arrive", 100 * MS)
    ])  # fmt: skip

    assert verdicts(found) == {
        "done": "met", "waits": "missed", "early": "unknown", "late": "unknown"
    }  # fmt: skip


def test_who_was_refused_is_not_served_and_missed_nothing() -> None:
    refused = [event("r", "arrive", 0), event("r", "reject", 1 * MS)]

    assert verdicts(judged_of("ttft=5ms", refused)) == {"r": "not served"}


def test_a_request_of_one_token_has_no_time_between_tokens_to_be_late_with() -> None:
    assert verdicts(judged_of("tpot=1ns", served("one", 0, 5, 9, tokens=1))) == {"one": "met"}


def test_of_tokens_that_all_came_at_once_it_is_not_known_how_long_each_took() -> None:
    assert verdicts(judged_of("tpot=1ms", served("all", 0, 9, 9))) == {"all": "unknown"}


def not_streamed(request: str) -> list[Row]:
    """A request whose client got its three tokens at once, 1 ms after the last was sampled."""
    return [
        event(request, "receive", 0), event(request, "arrive", 1 * MS),
        event(request, "admit", 2 * MS), event(request, "first-token", 10 * MS),
        event(request, "finish", 30 * MS, num_generated=3),
        event(request, "deliver", 31 * MS, num_generated=3),
    ]  # fmt: skip


def test_a_client_that_does_not_stream_has_the_engines_first_token_beside_its_own() -> None:
    trace = trace_of(lifecycle=not_streamed("r"))

    row = latencies(trace, blame(trace)).row(0, named=True)

    assert (row["ttft_ns"], row["engine_ttft_ns"]) == (31 * MS, 10 * MS)
    assert (row["tpot_ns"], row["engine_tpot_ns"]) == (None, 10 * MS)


def test_an_slo_on_the_engines_tokens_is_judged_where_the_client_got_all_at_once() -> None:
    found = judged_of("tpot=9ms,engine_ttft=9ms,engine_tpot=9ms", not_streamed("r"))

    row = found.requests.row(0, named=True)
    assert [row[f"met_{each}"] for each in found.slo.limits_ns] == [None, False, False]
    assert (row["cause_engine_ttft"], row["cause_ns_engine_ttft"]) == ("prefill", 8 * MS)
    assert (row["cause_engine_tpot"], row["cause_ns_engine_tpot"]) == ("decode", 20 * MS)


def test_of_a_request_whose_arrival_was_not_recorded_nothing_is_known() -> None:
    found = judged_of("ttft=5ms", [event("r", "first-token", 3 * MS), event("r", "finish", 4 * MS)])

    assert verdicts(found) == {"r": "unknown"}


def test_the_main_cause_is_what_took_most_of_the_time_that_was_too_long() -> None:
    waits = [
        event("r", "arrive", 0), event("r", "admit", 80 * MS), event("r", "first-token", 90 * MS),
        event("r", "finish", 900 * MS, num_generated=2),
    ]  # fmt: skip
    short = {
        "subject_kind": "request", "subject": "r", "verdict": "deferred", "resource": "kv-block",
        "ts_ns": 0, "step": 0,
    }  # fmt: skip
    ran = {"step": 1, "ts_ns": 80 * MS, "dur_ns": 820 * MS, "kind": "decode"}
    row = {"step": 1, "ts_ns": 80 * MS, "request": "r", "phase": "decode", "num_tokens": 1}

    found = judged_of(
        "ttft=50ms,tpot=50ms", waits, decisions=[short], steps=[ran], batch_rows=[row]
    )

    by_metric = {each.metric: each.causes for each in found.objectives()}
    assert by_metric == {"ttft": (("no-blocks", 1),), "tpot": (("decode", 1),)}
    missed = found.missed().row(0, named=True)
    assert (missed["missed"], missed["cause"], missed["cause_ns"]) == ("ttft", "no-blocks", 80 * MS)


def test_a_trace_without_requests_has_none_that_met_or_missed() -> None:
    found = judged_of("ttft=5ms", steps=[{"step": 1, "ts_ns": 0, "dur_ns": 5, "kind": "decode"}])

    assert found.requests.is_empty()
    assert found.goodput is None
    assert found.missed().is_empty()


@slow
@each_file
def test_latencies_of_every_file_are_those_counted_row_by_row(name: str) -> None:
    trace = opened(name)
    blamed = blame(trace)

    told = latencies(trace, blamed)

    if is_list_of_arrivals(trace) or not blamed.names_requests:
        assert told.is_empty()
        return
    raw = raw_latencies(trace)
    if not raw:
        assert told.select(
            "ttft_ns", "tpot_ns", "latency_ns"
        ).null_count().sum_horizontal().item() == 3 * len(told)
        return
    for row in told.to_dicts():
        own = raw[row["rank"], row["request"]]
        assert {name: row[name] for name in own} == pytest.approx(own)


@slow
@each_file
def test_goodput_of_every_file_is_that_of_a_plain_count(name: str) -> None:
    trace = opened(name)
    told = latencies(trace, blame(trace))
    known = {each: told[f"{each}_ns"].drop_nulls().sort().to_list() for each in METRICS}
    limits = {each: max(math.ceil(ns[len(ns) // 2]), 1) for each, ns in known.items() if ns}
    if not limits:
        pytest.skip("no latency is known")

    found = judged(trace, blame(trace), slo_of(",".join(f"{k}={v}ns" for k, v in limits.items())))

    one_token = told["num_tokens"].eq_missing(1)
    good = [
        row
        for row, is_one in zip(told.to_dicts(), one_token, strict=True)
        if row["outcome"] == "finish"
        and all(
            (row[f"{each}_ns"] is not None and row[f"{each}_ns"] <= limit)
            or (each in {"tpot", "engine_tpot"} and is_one and row["so_far_ns"] is not None)
            for each, limit in limits.items()
        )
    ]
    assert found.counts["met"] == len(good)
    assert sum(found.counts.values()) == len(told)
    span_ns = max(row["ended_ns"] for row in told.to_dicts()) - told["arrive_ns"].min()
    assert found.goodput in (None, pytest.approx(len(good) * 1e9 / span_ns))


@each_file
def test_gaps_of_every_file_are_differences_of_token_times(name: str) -> None:
    trace = opened(name)

    told = gaps_ns(trace).sort().to_list()

    rows = trace.outputs.filter(~pl.col("is_placeholder").fill_null(value=False)).collect()
    times: dict[tuple[int, str], list[int]] = {}
    for rank, request, ts_ns in rows.select("rank", "request", "ts_ns").drop_nulls().iter_rows():
        times.setdefault((rank, request), []).append(ts_ns)
    gaps = [
        b - a
        for each in times.values()
        for a, b in zip(sorted(each), sorted(each)[1:], strict=False)
    ]
    assert told == sorted(gaps)


def test_figures_are_those_of_sql_over_the_rows() -> None:
    trace: Trace = opened("sample_traces/vllm_prefixes.trace")
    told = latencies(trace, blame(trace))

    asked = trace.sql(
        "select count(*) as n, sum(f.ts_ns - a.ts_ns) as ns from"
        " (select request, min(ts_ns) as ts_ns from lifecycle"
        "  where event in ('receive', 'arrive') group by request) a"
        " join (select request, min(ts_ns) as ts_ns from lifecycle"
        "  where event = 'deliver' and coalesce(num_generated, 1) > 0 group by request) f"
        " on a.request = f.request"
    )

    known = told["ttft_ns"].drop_nulls()
    assert asked.row(0) == (len(known), known.sum())
