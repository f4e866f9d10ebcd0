"""Summaries of two traces against each other: each side as its own rows say, B less A beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stepscope.analyzers.latency.blame import blame
from stepscope.analyzers.summary.slo import slo_of
from stepscope.app.paired import deltas
from stepscope.app.paired.delta_rows import row, said_row, share_row
from stepscope.app.paired.pair import Pair
from stepscope.app.paired.summary_deltas import summary_deltas
from stepscope.app.present.blocks import Block, Heading, Paragraph
from stepscope.app.present.summary.serving import NO_SLO
from stepscope.ingest.trace import Trace
from tests.analyzers.summary.test_gpu_use import kernel
from tests.app.paired.pairs import pair
from tests.app.paired.test_deltas import asked, table
from tests.tiers import sampled, slow
from tests.traces import trace_of

SLO = "ttft=400ms,tpot=40ms,latency=2s"


def told(a: Trace, b: Trace, slo: str | None = None) -> list[Block]:
    asked_for = slo_of(slo) if slo else None
    return list(summary_deltas((a, b), (blame(a), blame(b)), asked_for))


def of_pair(name: str) -> tuple[Pair, list[Block]]:
    both = replace(pair(name), slo=slo_of(SLO))
    return both, list(both.summed)


TTFT_MET = """select count(*) from (
    select min(ts_ns) filter (where event = 'first-token')
         - min(ts_ns) as ttft
    from lifecycle group by rank, request) where ttft <= 400000000"""
FINISHED_IN_TIME = """select count(*) from (
    select min(ts_ns) filter (where event = 'finish')
         - min(ts_ns) as latency
    from lifecycle group by rank, request) where latency <= 2000000000"""


@pytest.mark.parametrize("name", sampled(["fcfs", "vllm"], ["vllm"]))
def test_how_many_met_an_slo_is_what_sql_counts_in_each(name: str) -> None:
    both, blocks = of_pair(name)
    shown = table(blocks, "requests")

    for label, sql in (("ttft met", TTFT_MET), ("latency met", FINISHED_IN_TIME)):
        assert shown[label] == row("", *(asked(trace, sql) for trace in both.traces))


def test_verdicts_and_causes_of_an_slo_add_up_to_all_requests_of_each() -> None:
    _, blocks = of_pair("vllm")
    shown, causes = table(blocks, "requests"), table(blocks, "missed, mostly by")

    for side in (0, 1):
        counts = [int(str(shown[each][side])) for each in ("met", "missed", "not served")]
        counts.append(int(str(shown["neither met nor missed"][side])))
        assert sum(counts) == int(str(shown["in all"][side]))
        assert sum(int(str(each[side])) for each in causes.values()) == counts[1]


@slow
def test_goodput_that_is_a_least_has_no_delta() -> None:
    _, blocks = of_pair("fcfs")
    shown = table(blocks, "requests")

    assert int(str(shown["ttft neither met nor missed"][0])) > 0
    unsure = told(open_ended(None), open_ended(30), "ttft=10ms,latency=1s")
    goodput = table(unsure, "requests")["goodput"]
    assert str(goodput[0]).startswith("at least ")
    assert goodput[2] == "not known"


def open_ended(until_ms: int | None) -> Trace:
    """Two requests, of which the second has no end where none is given."""

    def event(request: str, name: str, ms: int) -> dict[str, Any]:
        return {"ts_ns": ms * 1_000_000, "request": request, "event": name}

    rows = [event("a", "arrive", 0), event("a", "first-token", 5), event("a", "finish", 40),
            event("b", "arrive", 0), event("b", "first-token", 6)]  # fmt: skip
    return trace_of(lifecycle=[*rows, *([event("b", "finish", until_ms)] if until_ms else [])])


def test_without_an_slo_it_is_said_how_one_is_given() -> None:
    blocks = list(pair("fcfs").summed)

    assert Heading("SLO") in blocks
    assert NO_SLO in [each.text for each in blocks if isinstance(each, Paragraph)]


@slow
def test_of_latencies_that_no_request_has_the_number_is_none_and_the_times_unknown() -> None:
    both, blocks = of_pair("fcfs")
    shown = table(blocks, "latencies")

    tokens = "select count(*) from lifecycle where event = 'first-token'"
    assert shown["TTFT, known of"] == row("", *(asked(trace, tokens) for trace in both.traces))
    assert shown["TPOT, known of"] == ("0", "40", "+40")
    assert shown["TPOT p99"][0::2] == ("-", "not recorded")


def test_what_gpus_were_in_is_added_up_and_each_has_its_share_beside_that_of_the_other() -> None:
    a = trace_of(spans=[kernel("gemm", 0, 10), kernel("gemm", 90, 10),
                        kernel("ncclAllReduce", 5, 10, "GPU 1 / stream 8")])  # fmt: skip
    b = trace_of(spans=[kernel("gemm", 0, 60), kernel("gemm", 60, 40)])

    shown, busy = (table(told(a, b), name) for name in ("time of all GPUs together", "busy"))

    assert shown["gemm"] == row("_ns", 20, 100)
    assert shown["exposed communication"] == row("_ns", 10, 0)
    assert shown["in all"] == row("_ns", 200, 100)
    assert busy["GPU 0"] == ("20.0%", "100.0%", "+80.0 pp")
    assert busy["GPU 1"] == ("10.0%", "-", "not recorded")


@slow
def test_cores_are_told_by_kind_and_their_blocks_are_those_of_sql() -> None:
    both, blocks = of_pair("mix")
    shown = table(blocks, "cores")

    sql = "select count(*) from core_spans where core_kind = '{}'"
    for kind in ("AIC", "AIV0", "AIV1"):
        counts = (asked(trace, sql.format(kind)) for trace in both.traces)
        assert shown[f"{kind} blocks"] == row("", *counts)
    ran = table(blocks, "run on cores")
    sums = (
        "select sum(core_spans.end_ns - core_spans.ts_ns) from core_spans "
        "join tasks using (rank, task) where core_spans.shape = 'AIV' and name like 'gather L%'"
    )
    assert ran["gather L* b* · AIV"] == row("_ns", *(asked(each, sums) for each in both.traces))


def test_steps_of_a_kind_that_one_trace_has_not_are_none_there_and_take_no_time() -> None:
    both = pair("a profile and a run")
    shown = table(list(both.summed), "steps of kind")

    numbers = [
        asked(each, "select count(*) from steps where kind = 'mixed'") for each in both.traces
    ]
    assert shown["mixed: number"] == row("", *numbers)
    assert shown["mixed: mean"][1:] == ("-", "not recorded")


def test_two_traces_without_any_of_it_have_no_table() -> None:
    empty = trace_of()

    assert told(empty, empty, SLO) == []


@slow
def test_the_overview_of_two_holds_them_and_exchanging_turns_every_sign() -> None:
    both, _ = of_pair("vllm")
    shown = table(list(deltas.overview(both)), "load over time")
    other = table(list(deltas.overview(both.swapped())), "load over time")

    assert shown["requests waiting, at most"] == ("3", "0", "-3")
    assert other["requests waiting, at most"] == ("0", "3", "+3")
    assert both.swapped().slo == both.slo


def test_shares_differ_in_percentage_points_and_rates_keep_their_sign() -> None:
    assert share_row(0.25, 0.5) == ("25.0%", "50.0%", "+25.0 pp")
    assert share_row(0.5, 0.4999) == ("50.0%", "50.0%", "0.0 pp")
    assert share_row(None, 0.5) == ("-", "50.0%", "not recorded")
    assert said_row(2, 1, str) == ("2", "1", "-1")
